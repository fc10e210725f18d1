-- JSON (RFC 8259), as far as pollux's messages need it. Strings are UTF-8, as micro's are.
json = { null = {}, empty = {} } -- null, and the object without members

local letters = { b = '\b', f = '\f', n = '\n', r = '\r', t = '\t' }
local escapes = { ['"'] = '\\"', ['\\'] = '\\\\', ['\n'] = '\\n', ['\r'] = '\\r', ['\t'] = '\\t' }

local function escape(c)
  return escapes[c] or string.format('\\u%04x', c:byte())
end

-- quote writes a text, in parts: micro's Lua cannot replace more than 5000 characters at once.
local function quote(s)
  local parts = {}
  for i = 1, #s, 4000 do
    parts[#parts + 1] = s:sub(i, i + 3999):gsub('[%z\1-\31"\\]', escape)
  end
  return '"' .. table.concat(parts) .. '"'
end

-- encode writes a value. A table with [1], or without any member, is an array.
function json.encode(value)
  local kind = type(value)
  if value == json.null then
    return 'null'
  elseif value == json.empty then
    return '{}'
  elseif kind == 'string' then
    return quote(value)
  elseif kind ~= 'table' then
    return tostring(value)
  end
  local parts = {}
  if value[1] ~= nil or next(value) == nil then
    for i, one in ipairs(value) do
      parts[i] = json.encode(one)
    end
    return '[' .. table.concat(parts, ',') .. ']'
  end
  for name, one in pairs(value) do
    parts[#parts + 1] = json.encode(name) .. ':' .. json.encode(one)
  end
  return '{' .. table.concat(parts, ',') .. '}'
end

local function utf8(code)
  if code < 0x80 then
    return string.char(code)
  end
  local bytes, lead = {}, 0x40 -- lead is the first value that the first byte cannot hold
  while code >= lead do
    table.insert(bytes, 1, string.char(0x80 + code % 0x40))
    code, lead = math.floor(code / 0x40), lead / 2
  end
  return string.char(256 - 2 * lead + code) .. table.concat(bytes)
end

-- unicode reads what follows \u at i, a surrogate pair as well.
local function unicode(s, i)
  local code = tonumber(s:sub(i, i + 3), 16) or error('JSON: a bad \\u')
  local low = code >= 0xD800 and code < 0xDC00 and s:match('^\\u([Dd][C-Fc-f]%x%x)', i + 4)
  if low then
    return utf8(0x10000 + (code - 0xD800) * 0x400 + tonumber(low, 16) - 0xDC00), i + 10
  end
  return utf8(code >= 0xD800 and code < 0xE000 and 0xFFFD or code), i + 4
end

local function text(s, i) -- i is behind the quotation mark
  local wholes, parts = {}, {}
  while true do
    if #parts > 1000 then -- micro's Lua cannot join more than 5000 at once
      wholes[#wholes + 1], parts = table.concat(parts), {}
    end
    local at = s:find('["\\]', i) or error('JSON: a text without an end')
    parts[#parts + 1] = s:sub(i, at - 1)
    local c = s:sub(at + 1, at + 1)
    if s:byte(at) == 34 then
      return table.concat(wholes) .. table.concat(parts), at + 1
    elseif c == 'u' then
      parts[#parts + 1], i = unicode(s, at + 2)
    else
      parts[#parts + 1], i = letters[c] or c, at + 2
    end
  end
end

local words = { ['true'] = true, ['false'] = false, null = json.null }
local value

-- list reads what stands between brackets, and gives each part to add.
local function list(s, i, last, add)
  i = s:match('^%s*()', i)
  while s:sub(i, i) ~= last do
    i = s:match('^%s*,?%s*()', add(i))
    if i > #s then
      error('JSON: no ' .. last)
    end
  end
  return i + 1
end

function value(s, i)
  i = s:match('^%s*()', i)
  local c, result = s:sub(i, i), {}
  if c == '"' then
    return text(s, i + 1)
  elseif c == '[' then
    return result, list(s, i + 1, ']', function(at)
      result[#result + 1], at = value(s, at)
      return at
    end)
  elseif c == '{' then
    return result,
      list(s, i + 1, '}', function(at)
        local name
        name, at = value(s, at)
        result[name], at = value(s, s:match('^%s*:()', at) or error('JSON: no colon'))
        return at
      end)
  end
  local word = s:match('^[%w%.%+%-]+', i) or error('JSON: no value')
  result = words[word]
  if result == nil then
    result = tonumber(word) or error('JSON: ' .. word)
  end
  return result, i + #word
end

-- decode reads one value; it throws an error for what is none.
function json.decode(s)
  return (value(s, 1))
end
