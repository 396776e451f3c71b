-- Refuses a queue whose `schema` in `meta` is one that this script does not know; a new queue has none.
local function check_schema(schema)
  if schema and tonumber(schema) ~= 1 then
    error({ err = 'WINDLASSSCHEMA the queue has schema ' .. schema .. ', this client knows 1' })
  end
end
