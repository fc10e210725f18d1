-- What the plugin tells its user: whole, and without asking for a key.
local M = {}

local api = vim.api
local keys = api.nvim_create_namespace('pollux_said')
local shown -- the window of show

-- How many cells a message may take on its line.
local function room()
  return math.max(20, vim.v.echospace - 1)
end

-- The words of a message on lines that fit.
local function wrap(message, width)
  local lines = {}
  for _, paragraph in ipairs(vim.split(message, '\n')) do
    local line = ''
    for indent, word in paragraph:gmatch('(%s*)(%S+)') do
      local longer = line == '' and indent .. word or line .. indent .. word
      if line ~= '' and vim.fn.strdisplaywidth(longer) > width then
        lines[#lines + 1] = line
        longer = word
      end
      line = longer
    end
    lines[#lines + 1] = line
  end
  return lines
end

local function close()
  vim.on_key(nil, keys)
  if shown and api.nvim_win_is_valid(shown) then
    pcall(api.nvim_win_close, shown, true)
  end
  shown = nil
end

-- Shows lines above the command line until the next key, ten seconds at most.
local function show(lines)
  local width = 1
  for _, line in ipairs(lines) do
    width = math.max(width, vim.fn.strdisplaywidth(line))
  end
  local buf = api.nvim_create_buf(false, true)
  vim.bo[buf].bufhidden = 'wipe'
  api.nvim_buf_set_lines(buf, 0, -1, true, lines)
  local row = vim.o.lines - vim.o.cmdheight - 1
  local ok, win = pcall(api.nvim_open_win, buf, false, {
    relative = 'editor',
    anchor = 'SW',
    row = row,
    col = 0,
    width = math.min(width, vim.o.columns - 2),
    height = math.max(1, math.min(#lines, row - 2)),
    style = 'minimal',
    border = 'rounded',
    focusable = false,
    noautocmd = true,
  })
  if not ok then
    return pcall(api.nvim_buf_delete, buf, { force = true })
  end
  shown = win
  vim.defer_fn(function()
    if shown == win then
      close()
    end
  end, 10000)
  vim.on_key(close, keys) -- before what the key does: an editor does not leave with a window of ours
end

local count = 0 -- of messages

--- A number for the message told last, for over.
function M.last()
  return count
end

--- Takes a message off its line that holds no longer, unless something was told since.
function M.over(message)
  if message == count and api.nvim_get_mode().mode:match('^n') then
    close()
    vim.cmd("echo ''")
  end
end

-- A user's own vim.notify knows what to do with a message of any length.
local function own()
  return not debug.getinfo(vim.notify, 'S').source:match('vim/_')
end

--- Tells a message, which may have several lines, without [pollux] before it.
function M.lines(message, level)
  level, count = level or vim.log.levels.INFO, count + 1
  -- Later, on a screen that is drawn: a redraw would take the message away, and
  -- an error within a command would ask for a key.
  local settled = api.nvim_get_mode().mode:match('^n') -- the end of another mode clears its line
  vim.defer_fn(function()
    if own() then
      return vim.notify(message, level)
    end
    close()
    local lines = wrap(message, room())
    for _, line in ipairs(lines) do
      pcall(vim.cmd, 'redraw')
      vim.notify(line, level)
    end
    if #lines > 1 then
      vim.cmd("redraw | echo ''") -- the last line alone says little
      show(lines)
    end
  end, settled and 0 or 100)
end

--- Tells a message.
function M.say(message, level)
  M.lines('[pollux] ' .. message, level)
end

--- Tells what went wrong.
function M.fail(message)
  M.say(message, vim.log.levels.ERROR)
end

--- Tells in one line about something with a name, of which it may leave out a part.
function M.brief(name, message, level)
  local rest = room() - #'[pollux] : ' - vim.fn.strdisplaywidth(message)
  if vim.fn.strdisplaywidth(name) > rest then
    name = vim.fn.strcharpart(name, 0, math.max(8, rest - 1)) .. '…'
  end
  M.say(name .. ': ' .. message, level)
end

return M
