//! What a server does with a task.
