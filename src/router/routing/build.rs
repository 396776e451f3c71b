use std::collections::HashMap;
use std::sync::Arc;

use crate::router::handlers::States;
use crate::router::routing::error::RouterError;
use crate::router::routing::route::Route;
use crate::router::routing::router::Router;
use crate::router::routing::routes::{Inner, Routes};
use crate::task::check_kind;

impl Router {
    /// Checks everything.
    pub(crate) fn build(self) -> Result<Routes, RouterError> {
        if self.has_handlers() {
            self.check()
        } else {
            Err(RouterError::NoHandler)
        }
    }

    /// Checks everything of a router that is for dead-letter hooks only.
    pub(crate) fn build_without_handlers(self) -> Result<Routes, RouterError> {
        if self.has_handlers() {
            Err(RouterError::Handlers)
        } else {
            self.check()
        }
    }

    fn has_handlers(&self) -> bool {
        !(self.routes.is_empty() && self.fallbacks.is_empty())
    }

    fn check(mut self) -> Result<Routes, RouterError> {
        let mut routes = HashMap::with_capacity(self.routes.len());
        for (kind, route) in self.routes {
            check_kind(&kind)?;
            check_states(&self.states, &route, || format!("{kind:?}"))?;
            if routes.contains_key(&kind) {
                return Err(RouterError::TwoHandlers { kind });
            }
            routes.insert(kind, route);
        }
        let fallback = self.fallbacks.pop();
        if let Some(route) = &fallback {
            check_states(&self.states, route, || "any other kind".into())?;
        }
        if !self.fallbacks.is_empty() {
            return Err(RouterError::TwoFallbacks);
        }
        for kind in self.hooks.keys() {
            check_kind(kind)?;
        }
        Ok(Routes::new(Inner {
            routes,
            fallback,
            states: Arc::new(self.states),
            middleware: self.middleware.into(),
            hooks: self.hooks,
        }))
    }
}

fn check_states(
    states: &States,
    route: &Route,
    handler: impl FnOnce() -> String,
) -> Result<(), RouterError> {
    match route
        .required_states
        .iter()
        .find(|state| !states.has(**state))
    {
        None => Ok(()),
        Some(missing) => Err(RouterError::MissingState {
            handler: handler(),
            state: missing.name(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::router::fixture::{Number, refused, routes};
    use crate::router::{State, TaskContext};
    use crate::task::{NameError, RawTask};

    #[derive(Clone)]
    struct Db;

    async fn with_db(_: Number, _: TaskContext, _: State<Db>) -> Result<(), String> {
        Ok(())
    }

    async fn raw_with_db(_: RawTask, _: State<Db>) -> Result<(), String> {
        Ok(())
    }

    async fn raw(_: RawTask) -> Result<(), String> {
        Ok(())
    }

    fn blocking(_: Number) -> Result<(), String> {
        Ok(())
    }

    #[test]
    fn a_missing_state_is_named_with_its_handler() {
        let error = refused(Router::new().task(with_db).state(0u8));
        assert!(matches!(
            &error,
            RouterError::MissingState { handler, state } if handler == "\"number\"" && state.ends_with("Db")
        ));
        let error = refused(Router::new().raw("a", raw).fallback(raw_with_db));
        assert!(
            matches!(error, RouterError::MissingState { handler, .. } if handler == "any other kind")
        );
        routes(Router::new().task(with_db).state(Db));
    }

    #[test]
    fn an_optional_state_may_be_missing() {
        async fn handler(_: Number, _: Option<State<Db>>) -> Result<(), String> {
            Ok(())
        }
        routes(Router::new().task(handler));
    }

    #[test]
    fn two_handlers_for_one_kind_are_refused() {
        let error = refused(Router::new().raw("number", raw).blocking_task(blocking));
        let kind = "number".to_owned();
        assert_eq!(error, RouterError::TwoHandlers { kind });
        let error = refused(Router::new().fallback(raw).fallback(raw));
        assert_eq!(error, RouterError::TwoFallbacks);
    }

    #[test]
    fn a_kind_that_cannot_be_used_is_refused() {
        let error = refused(Router::new().raw("a{b", raw));
        assert!(matches!(
            error,
            RouterError::Kind(NameError { what: "kind", .. })
        ));
    }

    #[test]
    fn a_router_without_handlers_is_refused() {
        assert_eq!(refused(Router::new().state(Db)), RouterError::NoHandler);
    }

    #[test]
    fn kinds_are_known_by_their_handlers_and_all_by_a_fallback() {
        let router = Router::new().raw("a", raw).blocking_task(blocking);
        let known = routes(router.clone());
        assert!(known.knows("a") && known.knows("number") && !known.knows("b"));
        let known = routes(router.fallback(raw));
        assert!(known.knows("b"));
        let mut kinds: Vec<_> = known.kinds().collect();
        kinds.sort_unstable();
        assert_eq!(kinds, ["a", "number"]);
    }
}
