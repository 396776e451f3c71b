#!lua
-- edit: gives a task that is not active another payload.
--
-- KEYS[1]  the queue's base key
-- ARGV[1]  time in µs, or empty
-- ARGV[2]  id
-- ARGV[3]  the payload
-- returns  { answer, '' }: `done`, `missing`, `active` or `completed`
--
-- Keeps: what a handler was given does not change under it. Not allowed when Redis is out of memory.

read_meta()
local set = locate(ARGV[2])
if not set or not read_record(ARGV[2], { 'kind' }) then
  return { 'missing', '' }
end
if set == ACTIVE or set == COMPLETED then
  return { set == ACTIVE and 'active' or 'completed', '' }
end
redis.call('HSET', record_key(ARGV[2]), 'payload', ARGV[3])
return { 'done', '' }
