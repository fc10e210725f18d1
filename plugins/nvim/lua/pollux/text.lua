-- Texts as pollux has them, and buffers as Neovim has them.
local M = {}

local bom = '\239\187\191'

--- The number of UTF-16 units in the first `byte` bytes of line.
function M.utf16(line, byte)
  local n = 0
  for i = 1, math.min(byte, #line) do
    local b = line:byte(i)
    if b < 0x80 or b >= 0xC0 then
      n = n + (b >= 0xF0 and 2 or 1)
    end
  end
  return n
end

--- The byte (from 0) of line that stands behind so many UTF-16 units; its end where it has fewer.
function M.byte(line, units)
  local n = 0
  for i = 1, #line do
    local b = line:byte(i)
    if b < 0x80 or b >= 0xC0 then
      if n >= units then
        return i - 1
      end
      n = n + (b >= 0xF0 and 2 or 1)
    end
  end
  return #line
end

-- What a buffer makes of a text: its lines, and as options the byte order mark, line ends and a missing last one.
local function shape(text)
  local marked = text:sub(1, 3) == bom
  if marked then
    text = text:sub(4)
  end
  local final = text == '' or text:sub(-1) == '\n'
  local body = (final and text ~= '') and text:sub(1, -2) or text
  local lines = vim.split(body, '\n', { plain = true })
  -- Only where every line ends in CR LF they are the format, else characters.
  local dos = text:find('\r\n', 1, true) ~= nil
  local last = final and #lines or #lines - 1
  for i = 1, last do
    if lines[i]:sub(-1) ~= '\r' then
      dos = false
      break
    end
  end
  local blank = final and text ~= '' and #lines == 1 and (lines[1] == '' or dos and lines[1] == '\r')
  if dos then
    for i = 1, last do
      lines[i] = lines[i]:sub(1, -2)
    end
  end
  return { lines = lines, format = dos and 'dos' or 'unix', final = final, marked = marked, blank = blank }
end

local function put_shape(buf, s)
  local o = vim.bo[buf]
  vim.b[buf].pollux_blank = s.blank
  o.fileformat = s.format
  o.fixendofline = false
  o.endofline = s.final
  o.bomb = s.marked
  o.modified = false
end

--- Fills a buffer so that M.read gives the same text back, byte for byte.
function M.fill(buf, text)
  local o = vim.bo[buf]
  local s = shape(text)
  local levels = o.undolevels
  o.modifiable = true
  o.undolevels = -1 -- the filling is nothing to undo
  vim.api.nvim_buf_set_lines(buf, 0, -1, true, s.lines)
  o.undolevels = levels
  put_shape(buf, s)
end

--- The lines that differ: from, how many, and what comes in their place; from the first to the last.
function M.hunks(before, after)
  local diff = vim.text and vim.text.diff or vim.diff
  local all = {}
  for _, h in ipairs(diff(table.concat(before, '\n') .. '\n', table.concat(after, '\n') .. '\n', { result_type = 'indices' })) do
    local lines = {}
    for i = h[3], h[3] + h[4] - 1 do
      lines[#lines + 1] = after[i]
    end
    all[#all + 1] = { from = h[2] == 0 and h[1] or h[1] - 1, count = h[2], lines = lines }
  end
  return all
end

-- Where a line (from 1) of before stands afterwards.
local function moved(line, changes)
  local by = 0
  for _, h in ipairs(changes) do
    if line <= h.from then
      break
    elseif line <= h.from + h.count then
      return math.max(1, h.from + by + math.min(line - h.from, math.max(1, #h.lines)))
    end
    by = by + #h.lines - h.count
  end
  return line + by
end

--- The lines that a buffer has when it shows a text.
function M.lines(text)
  return shape(text).lines
end

--- Replaces what differs in the lines of a modifiable buffer, and returns whether anything does; marks, folds, cursors and views stay with their text.
function M.replace(buf, lines)
  local api, o = vim.api, vim.bo[buf]
  local changes = M.hunks(api.nvim_buf_get_lines(buf, 0, -1, true), lines)
  if #changes == 0 then
    return false
  end
  local views = {}
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    views[win] = api.nvim_win_call(win, vim.fn.winsaveview)
  end
  local readonly = o.readonly
  o.readonly = false
  o.undolevels = o.undolevels -- what was typed before is undone apart
  for i = #changes, 1, -1 do
    local h = changes[i]
    api.nvim_buf_set_lines(buf, h.from, h.from + h.count, true, h.lines)
  end
  o.readonly = readonly
  for win, view in pairs(views) do
    view.lnum, view.topline = moved(view.lnum, changes), moved(view.topline, changes)
    api.nvim_win_call(win, function()
      vim.fn.winrestview(view)
    end)
  end
  return true
end

--- Like M.fill, but what is the same stays, with marks, folds, cursors and undo.
function M.update(buf, text)
  local s, modifiable = shape(text), vim.bo[buf].modifiable
  vim.bo[buf].modifiable = true
  M.replace(buf, s.lines)
  put_shape(buf, s)
  vim.bo[buf].modifiable = modifiable
end

--- The text of a buffer as it would be written.
function M.read(buf)
  local o = vim.bo[buf]
  local lines = vim.api.nvim_buf_get_lines(buf, 0, -1, true)
  if #lines == 1 and lines[1] == '' and not vim.b[buf].pollux_blank then
    return o.bomb and bom or '' -- one empty line is how a buffer shows no text
  end
  local eol = o.fileformat == 'dos' and '\r\n' or o.fileformat == 'mac' and '\r' or '\n'
  return (o.bomb and bom or '') .. table.concat(lines, eol) .. (o.endofline and eol or '')
end

--- Whether s is UTF-8 throughout, as JSON must be.
function M.valid(s)
  local i, n = 1, #s
  while i <= n do
    local b = s:byte(i)
    if b < 0x80 then
      i = (s:find('[\128-\255]', i) or n + 1)
    else
      local size = b >= 0xF0 and 4 or b >= 0xE0 and 3 or 2
      local low = ({ [0xE0] = 0xA0, [0xF0] = 0x90 })[b] or 0x80
      local high = ({ [0xED] = 0x9F, [0xF4] = 0x8F })[b] or 0xBF
      if b < 0xC2 or b > 0xF4 then
        return false
      end
      for k = 1, size - 1 do
        local c = s:byte(i + k)
        if not c or c < low or c > high then
          return false
        end
        low, high = 0x80, 0xBF
      end
      i = i + size
    end
  end
  return true
end

--- Paths to file: URIs and back.
function M.uri(path)
  path = path:gsub('\\', vim.fn.has('win32') == 1 and '/' or '\\')
  if path:sub(1, 1) ~= '/' then
    path = '/' .. path
  end
  return 'file://' .. path:gsub('[^%w/._~:@$&+=,;!*()-]', function(c)
    return ('%%%02X'):format(c:byte())
  end)
end

return M
