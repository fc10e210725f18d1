-- A driver for `pollux conform` (docs/conform.md): it plays the user of a Neovim with pollux's plugin, by Neovim's own
-- remote calls. It runs in a second Neovim:
--
--   pollux conform --driver 'nvim --clean --headless -S contract/drivers/neovim.lua' -- nvim --clean --headless -n
--     --listen ../nvim --cmd 'let g:pollux={"headless":v:true}' --cmd 'set rtp^=…/plugins/nvim'
--
-- The editor listens at $POLLUX_DRIVE, or beside the workspace at ../nvim.
local address = os.getenv('POLLUX_DRIVE') or os.getenv('POLLUX_CONFORM_DIR') .. '/../nvim'

-- What runs in the editor. It gets one line of the protocol and returns its answer.
local hands = [==[
local line = ...
local api, fn = vim.api, vim.fn
local diff = require('pollux.diff')

local function decided(before)
  return vim.wait(5000, function()
    return #diff.list() < before
  end, 5)
end

-- Waits until the companion has heard all that was said before: it answers in order.
local function heard()
  local over
  require('pollux').execute('pollux.status', nil, function()
    over = true
  end)
  vim.wait(5000, function()
    return over
  end, 5)
end

-- A moment in which a person looks: longer than what the plugin gathers into one message.
local function look()
  vim.wait(80, function()
    return false
  end)
  heard()
end

local function normal()
  vim.cmd('silent! stopinsert')
  vim.cmd('normal! \27')
end

-- Byte of a position that counts UTF-16 units.
local function byte(buf, p)
  local text = api.nvim_buf_get_lines(buf, p.line, p.line + 1, false)[1]
  return text and vim.str_byteindex(text, p.character, true) or 0
end

local function edit(path)
  normal()
  vim.cmd('silent hide edit! ' .. fn.fnameescape(path))
  return api.nvim_get_current_buf()
end

-- Puts a text into a buffer as a user would who types all of it.
local function fill(buf, text)
  local final = text:sub(-1) == '\n'
  local lines = vim.split(final and text:sub(1, -2) or text, '\n', { plain = true })
  api.nvim_buf_set_lines(buf, 0, -1, true, lines)
  vim.bo[buf].fixendofline, vim.bo[buf].endofline = false, final
end

local function select(buf, s)
  local from, till = byte(buf, s.start), byte(buf, s['end'])
  local row = s['end'].line
  if till == 0 then -- up to the end of the line before, its end included
    row = row - 1
    till = #(api.nvim_buf_get_lines(buf, row, row + 1, false)[1] or '') + 1
  end
  -- Visual mode holds whole characters, the last one included.
  fn.cursor(row + 1, 1)
  local last = api.nvim_buf_get_lines(buf, row, row + 1, false)[1] or ''
  local col = till - 1
  while col > 0 and last:byte(col + 1) and last:byte(col + 1) >= 0x80 and last:byte(col + 1) < 0xC0 do
    col = col - 1
  end
  fn.cursor(row + 1, col + 1)
  vim.cmd('normal! v')
  fn.cursor(s.start.line + 1, from + 1)
end

local function report(r)
  normal()
  if r.Open and r.Open ~= vim.NIL then
    local keep = { [r.Active or ''] = true }
    for _, path in ipairs(r.Open) do
      keep[path] = true
      local buf = fn.bufadd(path)
      fn.bufload(buf)
      vim.bo[buf].buflisted = true
    end
    for _, buf in ipairs(api.nvim_list_bufs()) do
      if vim.bo[buf].buftype == '' and not keep[api.nvim_buf_get_name(buf)] and api.nvim_buf_get_name(buf) ~= '' then
        vim.cmd('bwipeout! ' .. buf)
      end
    end
  end
  if not r.Active or r.Active == '' then
    vim.cmd('silent hide enew')
    return look()
  end
  local dirty = r.Dirty and r.Dirty ~= vim.NIL and r.Dirty[1] == r.Active
  local buf = dirty and api.nvim_get_current_buf() or edit(r.Active)
  if dirty then
    api.nvim_buf_set_lines(buf, -1, -1, true, { '' })
  end
  if r.Cursor then
    api.nvim_win_set_cursor(0, { r.Cursor.line + 1, byte(buf, r.Cursor) })
  end
  if r.Selections and r.Selections[1] then
    select(buf, r.Selections[1])
  end
  look()
end

local function policy(mode)
  local over
  require('pollux').execute('pollux.setPolicy', { policy = mode }, function(_, err)
    over = err and err.message or true
  end)
  vim.wait(5000, function()
    return over
  end, 5)
  return over ~= true and tostring(over) or nil
end

local function reset()
  normal()
  while diff.list()[1] do
    local n = #diff.list()
    diff.reject(diff.list()[1])
    if not decided(n) then
      return 'a diff cannot be rejected'
    end
  end
  vim.cmd('silent! tabonly! | silent! only!')
  vim.cmd('silent! %bwipeout!')
  local problem = policy('ask')
  vim.wait(250, function()
    return false
  end) -- what was open is told before the next session begins
  return problem
end

-- Shows a diff; there is no room for it before the last one's windows are closed, which happens by and by.
local function show(d)
  vim.wait(5000, function()
    return (pcall(diff.show, d))
  end, 50)
end

-- Decides the oldest diff; by returns false where that is refused.
local function decide(by, content)
  vim.wait(5000, function()
    return diff.list()[1]
  end, 5)
  local d, n = diff.list()[1], #diff.list()
  if not d then
    return 'no diff is open'
  end
  if content then
    show(d)
    fill(d.right, content)
  end
  if by and (by(d) == false or not decided(n)) then
    return 'the diff stays open'
  end
  heard()
end

local function write(p, save)
  local buf = edit(p.path)
  fill(buf, p.content)
  if save then
    vim.cmd('silent write!')
  end
end

local function holds(p)
  local buf = fn.bufnr('^' .. fn.escape(p.path, '\\*?[]{}^$.~') .. '$')
  if buf < 0 or not api.nvim_buf_is_loaded(buf) then
    return 'it is not open'
  end
  local text = table.concat(api.nvim_buf_get_lines(buf, 0, -1, true), '\n') .. (vim.bo[buf].endofline and '\n' or '')
  if text ~= p.content then
    return ('the buffer holds %q'):format(text)
  end
end

local function views(n)
  if not vim.wait(8000, function()
    return #diff.list() == n
  end, 5) then
    return ('%d diffs are open'):format(#diff.list())
  end
end

local function run(d)
  if d.reset then
    return reset()
  elseif d.report then
    return report(d.report)
  elseif d.accept ~= nil then
    return decide(diff.accept, d.accept ~= vim.NIL and d.accept or nil)
  elseif d.reject then
    return decide(diff.reject)
  elseif d.close then
    return decide(function(open)
      show(open)
      vim.cmd('tabclose')
    end)
  elseif d.edit then
    return decide(nil, d.edit)
  elseif d.policy then
    return policy(d.policy)
  elseif d.views then
    return views(d.views)
  elseif d.type then
    return write(d.type, false)
  elseif d.save then
    return write(d.save, true)
  elseif d.holds then
    return holds(d.holds)
  elseif d.touch then
    vim.cmd('silent! checktime | doautocmd <nomodeline> FocusGained')
    return
  end
  return false -- a trust of its own, and a reason to refuse, Neovim has not
end

local problem = run(vim.json.decode(line))
if problem == false then
  return '{"unsupported":true}'
end
return vim.json.encode(problem and { error = problem } or { ok = true })
]==]

local function connect()
  for _ = 1, 200 do
    local ok, channel = pcall(vim.fn.sockconnect, 'pipe', address, { rpc = true })
    if ok and channel > 0 then
      return channel
    end
    vim.wait(50)
  end
end

local channel = connect()
for line in io.lines() do
  local ok, answer = pcall(vim.fn.rpcrequest, channel or 0, 'nvim_exec_lua', hands, { line })
  if not ok then
    answer = vim.json.encode({ error = channel and tostring(answer) or 'no Neovim listens at ' .. address })
  end
  io.write(answer, '\n')
  io.flush()
end
vim.cmd('qall!')
