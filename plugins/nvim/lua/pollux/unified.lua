-- The unified layout: the proposal alone, to be edited, with the lines that it takes away between its own.
local colours = require('pollux.colours')
local say = require('pollux.say')
local text = require('pollux.text')
local M = {}

local api = vim.api
local space = api.nvim_create_namespace('pollux_unified')
local most = 20000 -- lines that are compared at each key
local shown = {} -- diffs by the buffer of their proposal

--- Whether a diff is short enough for this layout.
function M.fits(d)
  return api.nvim_buf_line_count(d.left) <= most and api.nvim_buf_line_count(d.right) <= most
end

-- A line as virtual text shows it: tabs as wide as in the buffer, and no control characters.
local function flat(line, tabstop)
  local out = ''
  for part, tab in line:gmatch('([^\t]*)(\t?)') do
    out = out .. vim.fn.strtrans(part)
    if tab ~= '' then
      out = out .. (' '):rep(tabstop - vim.fn.strdisplaywidth(out) % tabstop)
    end
  end
  return out
end

-- The bytes at which two lines begin and end to differ, in the second one.
local function differ(old, new)
  local first, last = 0, 0
  while first < math.min(#old, #new) and old:byte(first + 1) == new:byte(first + 1) do
    first = first + 1
  end
  while last < math.min(#old, #new) - first and old:byte(#old - last) == new:byte(#new - last) do
    last = last + 1
  end
  return first, #new - last
end

-- The changes of a diff: row (from 0) and lines in the proposal, from (lines before it) and count in the file.
local function changes(old, new)
  local all, by = {}, 0
  if #old == 1 and old[1] == '' then -- a file that is not there
    return { { row = 0, lines = new, from = 0, count = 0 } }
  end
  for _, h in ipairs(text.hunks(old, new)) do
    all[#all + 1] = { row = h.from + by, lines = h.lines, from = h.from, count = h.count }
    by = by + #h.lines - h.count
  end
  return all
end

-- Draws one change.
local function draw(buf, h, old)
  local gone = {}
  for i = h.from + 1, h.from + h.count do
    gone[#gone + 1] = { { '- ' .. flat(old[i], vim.bo[buf].tabstop), 'PolluxGone' } }
  end
  if #gone > 0 then
    local above = #h.lines > 0 or h.row == 0
    api.nvim_buf_set_extmark(buf, space, above and h.row or h.row - 1, 0, { virt_lines = gone, virt_lines_above = above, virt_lines_leftcol = true })
  end
  for i, line in ipairs(h.lines) do
    local row = h.row + i - 1
    api.nvim_buf_set_extmark(buf, space, row, 0, { sign_text = '+', sign_hl_group = 'PolluxAdd', line_hl_group = 'PolluxAdd' })
    if i <= h.count then
      local first, last = differ(old[h.from + i], line)
      if first < last then
        api.nvim_buf_set_extmark(buf, space, row, first, { end_col = last, hl_group = 'PolluxText' })
      end
    end
  end
end

-- Shows the lines that are taken away before the first one, in a window that shows that one: they stand above it.
local function show_first(d)
  local h = d.changes[1]
  for _, win in ipairs(h and h.row == 0 and h.count > 0 and vim.fn.win_findbuf(d.right) or {}) do
    api.nvim_win_call(win, function()
      if vim.fn.winsaveview().topline == 1 then
        vim.fn.winrestview({ topfill = math.min(h.count, api.nvim_win_get_height(win) - 1) })
      end
    end)
  end
end

--- Draws a diff as it is now, and returns the lines where changes begin.
function M.draw(d)
  local old, new = api.nvim_buf_get_lines(d.left, 0, -1, true), api.nvim_buf_get_lines(d.right, 0, -1, true)
  api.nvim_buf_clear_namespace(d.right, space, 0, -1)
  d.changes = changes(old, new)
  local starts = {}
  for _, h in ipairs(d.changes) do
    draw(d.right, h, old)
    starts[#starts + 1] = math.min(h.row + 1, #new)
  end
  show_first(d)
  return starts
end

local function visit(d, h)
  api.nvim_win_set_cursor(0, { math.min(h.row + 1, api.nvim_buf_line_count(d.right)), 0 })
  if h.row == 0 then
    vim.fn.winrestview({ topline = 1 })
    show_first(d)
  end
end

-- Goes to the next change, or with step -1 to the one before.
local function jump(d, step)
  local line, found = api.nvim_win_get_cursor(0)[1], nil
  for _, h in ipairs(d.changes) do
    local start = math.min(h.row + 1, api.nvim_buf_line_count(d.right))
    if step < 0 and start < line or step > 0 and start > line and not found then
      found = h
    end
  end
  if found then
    visit(d, found)
  end
end

-- Takes the change at the cursor back.
local function obtain(d)
  local line = api.nvim_win_get_cursor(0)[1]
  for _, h in ipairs(d.changes) do
    if line > h.row and line <= h.row + #h.lines or #h.lines == 0 and (line == h.row or line == h.row + 1) then
      local old = h.count > 0 and api.nvim_buf_get_lines(d.left, h.from, h.from + h.count, true) or {}
      return api.nvim_buf_set_lines(d.right, h.row, h.row + #h.lines, true, old)
    end
  end
  say.say('no change here')
end

--- What the keys of this layout do in the window at hand: 'next', 'previous' or 'obtain'.
function M.key(what)
  local d = shown[api.nvim_get_current_buf()]
  if d and what == 'obtain' and vim.bo.modifiable then
    obtain(d)
  elseif d and what ~= 'obtain' then
    jump(d, what == 'next' and 1 or -1)
  end
end

--- Makes the current window that of a diff, at its first change.
function M.begin(d)
  shown[d.right] = d
  local o = vim.wo[d.win]
  o.number, o.relativenumber, o.signcolumn, o.foldcolumn, o.foldenable = false, false, 'yes:1', '0', false
  for lhs, what in pairs({ [']c'] = 'next', ['[c'] = 'previous', ['do'] = 'obtain' }) do
    api.nvim_buf_set_keymap(d.right, 'n', lhs, ("<Cmd>lua require('pollux.unified').key('%s')<CR>"):format(what), { noremap = true, silent = true })
  end
  api.nvim_create_autocmd('BufWipeout', {
    buffer = d.right,
    callback = function()
      shown[d.right] = nil
    end,
  })
  colours.set()
  M.draw(d)
  if d.changes[1] then
    visit(d, d.changes[1])
  end
end

return M
