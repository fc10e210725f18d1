-- What the user looks at: focus, cursor, selection, open files and folders.
local text = require('pollux.text')
local M = {}

local api, uv = vim.api, vim.uv or vim.loop
local limit = 16384 + 512 -- UTF-16 units of a selection

local send -- the function that takes a context, set by start
local timer, last, files, kept
local visual = { v = true, V = true, ['\22'] = true, s = true, S = true, ['\19'] = true }

--- The file that a buffer edits, or nil when it is none of the user's; missing says that it need not be there.
function M.file(buf, missing)
  if not api.nvim_buf_is_loaded(buf) or vim.bo[buf].buftype ~= '' then
    return nil
  end
  local name = api.nvim_buf_get_name(buf)
  if name == '' or name:match('^%a[%w+.-]+://') or name:match('[/\\]%.git[/\\]') then
    return nil
  end
  local path = vim.fn.fnamemodify(name, ':p')
  local stat = uv.fs_stat(path)
  if not stat and not missing or stat and stat.type ~= 'file' then
    return nil
  end
  return path
end

local function open_files()
  if not files then
    files = {}
    for _, buf in ipairs(api.nvim_list_bufs()) do
      local path = api.nvim_buf_is_loaded(buf) and vim.bo[buf].buflisted and M.file(buf, true) -- the companion looks which are there, and watches them
      if path then
        files[#files + 1] = text.uri(path)
      end
    end
  end
  return files
end

-- What a process was started with; where no file says so, a node is taken for the CLI.
local function arguments(pid)
  local file = io.open(('/proc/%d/cmdline'):format(pid))
  local all = file and file:read('*a') or 'gemini'
  if file then
    file:close()
  end
  return all
end

--- Whether a terminal is the CLI's own: the file that the user was in stays active there.
function M.is_cli(buf)
  if vim.bo[buf].buftype ~= 'terminal' then
    return false
  end
  local b = vim.b[buf]
  if b.pollux_cli or api.nvim_buf_get_name(buf):match('gemini') or tostring(b.term_title):lower():match('gemini') then
    return true
  end
  local pid = b.terminal_job_pid
  for _ = 1, 4 do -- the shell, perhaps a wrapper, the CLI
    local ok, children = pcall(api.nvim_get_proc_children, pid)
    if not ok or not children[1] then
      return false
    end
    pid = children[#children]
    local found, proc = pcall(api.nvim_get_proc, pid)
    if found and proc and (tostring(proc.name):match('gemini') or proc.name == 'node' and arguments(pid):match('gemini')) then
      return true
    end
  end
  return false
end

-- A position of getpos() as LSP has it.
local function position(buf, row, byte)
  local line = api.nvim_buf_get_lines(buf, row - 1, row, false)[1] or ''
  return { line = row - 1, character = text.utf16(line, byte) }
end

-- Joins as many lines as a selection may have.
local function bounded(lines)
  local size = 0
  for i, line in ipairs(lines) do
    size = size + #line + 1
    if size > limit * 4 then
      return table.concat(lines, '\n', 1, i):sub(1, limit * 4):gsub('[\192-\255][\128-\191]*$', '')
    end
  end
  return table.concat(lines, '\n')
end

local function get(buf, first, last_row)
  local rows = math.min(last_row, first + limit)
  return api.nvim_buf_get_lines(buf, first - 1, rows, false)
end

-- The end of the character that starts at or before byte (1-based), as a count of bytes.
local function char_end(line, byte)
  if byte > #line then
    return #line
  end
  local e = byte
  while e < #line and line:byte(e + 1) >= 0x80 and line:byte(e + 1) < 0xC0 do
    e = e + 1
  end
  -- Combining characters belong to it.
  local whole = vim.fn.matchstr(line:sub(byte, byte + 200), '.')
  return math.max(e, byte - 1 + #whole)
end

local function charwise(buf, a, b)
  local lines = get(buf, a[1], b[1])
  local whole = #lines == b[1] - a[1] + 1
  local final = api.nvim_buf_get_lines(buf, b[1] - 1, b[1], false)[1] or ''
  local stop, over = char_end(final, b[2]), false
  if vim.o.selection == 'exclusive' then
    stop = b[2] - 1
  elseif b[2] > #final then
    over = b[1] < api.nvim_buf_line_count(buf) -- the line's end is selected too
  end
  if whole then
    lines[#lines] = lines[#lines]:sub(1, stop)
  end
  lines[1] = lines[1]:sub(a[2])
  local till = over and { line = b[1], character = 0 } or { line = b[1] - 1, character = text.utf16(final, stop) }
  return { start = position(buf, a[1], a[2] - 1), ['end'] = till, text = bounded(lines) .. (over and whole and '\n' or '') }
end

local function linewise(buf, a, b)
  local more = b[1] < api.nvim_buf_line_count(buf)
  local final = api.nvim_buf_get_lines(buf, b[1] - 1, b[1], false)[1] or ''
  return {
    start = { line = a[1] - 1, character = 0 },
    ['end'] = more and { line = b[1], character = 0 } or { line = b[1] - 1, character = text.utf16(final, #final) },
    text = bounded(get(buf, a[1], b[1])) .. ((more or vim.bo[buf].endofline) and '\n' or ''),
  }
end

-- Screen columns (from 0) of the character at byte: where it starts and ends.
local function columns(line, byte, off)
  local from = vim.fn.strdisplaywidth(line:sub(1, byte - 1)) + off
  return from, from + math.max(1, vim.fn.strdisplaywidth(line:sub(byte, char_end(line, byte)), from))
end

local function blockwise(buf, a, b)
  local first, final = get(buf, a[1], a[1])[1] or '', get(buf, b[1], b[1])[1] or ''
  local a1, a2 = columns(first, a[2], a[3])
  local b1, b2 = columns(final, b[2], b[3])
  local from, till = math.min(a1, b1), math.max(a2, b2)
  if vim.fn.winsaveview().curswant >= 2147483647 then
    till = math.huge -- up to every line's end, by $
  end
  local out, bounds = {}, {}
  for i, line in ipairs(get(buf, a[1], math.min(b[1], a[1] + 2000))) do
    local col, byte, piece, first_byte, last_byte = 0, 0, {}, nil, nil
    for _, char in ipairs(vim.fn.split(line, '\\zs')) do
      local width = vim.fn.strdisplaywidth(char, col)
      if col < till and col + width > from then
        piece[#piece + 1] = char
        first_byte = first_byte or byte
        last_byte = byte + #char
      end
      col, byte = col + width, byte + #char
    end
    out[i] = table.concat(piece)
    bounds[i] = { text.utf16(line, first_byte or #line), text.utf16(line, last_byte or #line) }
  end
  return {
    start = { line = a[1] - 1, character = bounds[1][1] },
    ['end'] = { line = b[1] - 1, character = bounds[#bounds][2] },
    text = bounded(out),
  }
end

-- The selection of the current window, nil when there is none.
local function selection(buf, mode)
  local v, c = vim.fn.getpos('v'), vim.fn.getpos('.')
  local a, b = { v[2], v[3], v[4] }, { c[2], c[3], c[4] }
  if a[1] > b[1] or a[1] == b[1] and a[2] + a[3] > b[2] + b[3] then
    a, b = b, a
  end
  if mode == 'V' or mode == 'S' then
    return linewise(buf, a, b)
  elseif mode == '\22' or mode == '\19' then
    return blockwise(buf, a, b)
  end
  return charwise(buf, a, b)
end

local latest -- the last message, also of a companion that has gone
local with_file -- the last one that has an active file
local left -- the window that was left before what happened in it was told

-- What to say in the CLI's own terminal: the last file again where it was
-- another's before, such as the shell's that the CLI was started from.
local function stays()
  if latest and latest.textDocument == vim.NIL and with_file and vim.tbl_contains(open_files(), with_file.textDocument.uri) then
    return vim.tbl_extend('force', with_file, { openDocuments = open_files() })
  end
end

local context

-- The context of a window that the user came from into the CLI's terminal.
local function behind(win)
  if win and win > 0 and api.nvim_win_is_valid(win) and M.file(api.nvim_win_get_buf(win)) then
    return api.nvim_win_call(win, context)
  end
end

-- The message for now, or nil when there is nothing to say.
function context()
  local buf, mode = api.nvim_get_current_buf(), api.nvim_get_mode().mode:sub(1, 1)
  if mode == 'c' or vim.fn.getcmdwintype() ~= '' then
    return nil -- the user comes back
  elseif M.is_cli(buf) then
    return behind(left) or stays()
  end
  local path = not vim.wo.previewwindow and M.file(buf) or nil
  if not path then
    kept = nil
    return { textDocument = vim.NIL, openDocuments = open_files() }
  end
  local cursor = api.nvim_win_get_cursor(0)
  local tick = api.nvim_buf_get_changedtick(buf)
  local state = ('%d %d %d %d'):format(buf, tick, cursor[1], cursor[2])
  local message = {
    textDocument = { uri = text.uri(path) },
    position = position(buf, cursor[1], cursor[2]),
    openDocuments = open_files(),
  }
  if visual[mode] then
    local ok, s = pcall(selection, buf, mode)
    if ok and s.text ~= '' then
      message.selection = s
      kept = { state = state, selection = s }
    end
  elseif kept and kept.state == state then
    message.selection = kept.selection -- until the cursor or the text moves on
  else
    kept = nil
  end
  return message
end

local function flush(first)
  local message = send and (context() or first == true and (latest or behind(vim.fn.win_getid(vim.fn.winnr('#')))))
  left = nil
  if not message then
    return
  end
  local ok, key = pcall(vim.json.encode, message)
  if ok and key ~= last then
    last, latest = key, message
    with_file = message.textDocument ~= vim.NIL and message or with_file
    send(message)
  end
end

--- Says what there is to say, 50 ms after the first of several events.
function M.touch(lists)
  if lists then
    files = nil
  end
  if not send or timer:is_active() then
    return
  end
  timer:start(50, 0, vim.schedule_wrap(flush))
end

--- From now on to is called with every context.
function M.start(to)
  send, last, files = to, nil, nil
  timer = timer or uv.new_timer()
  local group = api.nvim_create_augroup('pollux_context', {})
  api.nvim_create_autocmd({ 'CursorMoved', 'CursorMovedI', 'ModeChanged', 'TextChanged', 'TextChangedI', 'WinEnter', 'TabEnter', 'FocusGained', 'TermLeave', 'CmdlineLeave' }, {
    group = group,
    callback = function()
      M.touch(false)
    end,
  })
  api.nvim_create_autocmd('WinLeave', {
    group = group,
    callback = function()
      if timer:is_active() and M.file(api.nvim_get_current_buf()) then
        left = api.nvim_get_current_win()
      end
    end,
  })
  api.nvim_create_autocmd({ 'BufEnter', 'BufAdd', 'BufDelete', 'BufUnload', 'BufWipeout', 'BufFilePost', 'BufReadPost', 'BufWritePost', 'FileChangedShellPost' }, {
    group = group,
    callback = function()
      M.touch(true)
    end,
  })
  flush(true)
end

function M.stop()
  send = nil
  pcall(api.nvim_del_augroup_by_name, 'pollux_context')
end

-- The folder of the repository that path lies in, or nil.
local function repository(path)
  local dir = path
  for _ = 1, 100 do
    if uv.fs_stat(dir .. '/.git') then
      return dir
    end
    local up = vim.fn.fnamemodify(dir, ':h')
    if up == dir then
      return nil
    end
    dir = up
  end
end

local function within(path, root)
  return path == root or path:sub(1, #root + 1) == root .. '/' or root == '/'
end

--- The project's folders: those of every tab and window, repositories, and those of language servers.
function M.roots()
  local all = {}
  local function add(dir)
    if not dir or dir == '' or vim.fn.isdirectory(dir) == 0 then
      return
    end
    dir = uv.fs_realpath(dir) or dir
    for _, root in ipairs(all) do
      if within(dir, root) then
        return
      end
    end
    all = vim.tbl_filter(function(root)
      return not within(root, dir)
    end, all)
    all[#all + 1] = dir
  end
  local function project(dir)
    add(repository(dir) or dir)
  end
  project(vim.fn.getcwd(-1, -1))
  for _, tab in ipairs(api.nvim_list_tabpages()) do
    for _, win in ipairs(api.nvim_tabpage_list_wins(tab)) do
      local ok, dir = pcall(vim.fn.getcwd, vim.fn.win_id2win(win), api.nvim_tabpage_get_number(tab))
      if ok then
        project(dir)
      end
      local path = M.file(api.nvim_win_get_buf(win))
      if path then
        add(repository(vim.fn.fnamemodify(path, ':h')))
      end
    end
  end
  local lsp = package.loaded['vim.lsp'] -- which vim.lsp would load
  for _, client in ipairs(lsp and (lsp.get_clients or lsp.get_active_clients)() or {}) do
    for _, folder in ipairs(client.workspace_folders or {}) do
      add(folder.uri and vim.uri_to_fname(folder.uri))
    end
  end
  return all
end

return M
