#!lua
-- edit: gives a task that is not active another payload.
--
-- KEYS[1]  the queue's base key
-- ARGV[1]  time in µs, or empty
-- ARGV[2]  id
-- ARGV[3]  the kind that the payload is for
-- ARGV[4]  the payload
-- returns  { outcome, detail }: `done`, `missing`, `active`, `completed`, or `kind` and the task's own
--
-- Keeps: what a handler was given does not change under it. Not allowed when Redis is out of memory.
-- Uses: keys, schema, records

check_schema(redis.call('HGET', key('meta'), 'schema'))
local set = locate(ARGV[2])
local record = set and read_record(ARGV[2], { 'kind' })
if not record then
  return { 'missing', '' }
end
if set == 'active' or set == 'completed' then
  return { set, '' }
end
if record.kind ~= ARGV[3] then
  return { 'kind', record.kind }
end
redis.call('HSET', record_key(ARGV[2]), 'payload', ARGV[4])
return { 'done', '' }
