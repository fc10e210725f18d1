-- A plugin for pollux, whole: context and diffs, for Neovim.
-- Try it: nvim --clean --cmd 'luafile plugin.lua' FILE, with pollux in PATH.
-- In another editor, replace what begins with vim. docs/spec/editor-protocol.md has the messages.
local api = vim.api
local job, diffs, last, waiting = nil, {}, nil, nil

---- 1. Messages: one JSON value a line, both ways. ----
local function send(message)
  message.jsonrpc = '2.0'
  return job and vim.fn.chansend(job, vim.json.encode(message) .. '\n')
end

local function notify(method, params)
  send({ method = method, params = params })
end

---- 2. Context: focus, cursor, selection and open files, in one message. ----
local uri = vim.uri_from_fname

-- Positions are 0-based; characters are counted in UTF-16 units.
local function position(row, column)
  return { line = row - 1, character = select(2, vim.str_utfindex(vim.fn.getline(row), column)) }
end

local function file(buf) -- the path of a file on disk; nil for a diff, a terminal, a help page
  local path = api.nvim_buf_get_name(buf)
  return vim.bo[buf].buftype == '' and vim.fn.filereadable(path) == 1 and path or nil
end

local function context()
  waiting = nil
  local loaded = vim.tbl_filter(api.nvim_buf_is_loaded, api.nvim_list_bufs())
  local path, params = file(0), { textDocument = vim.NIL, openDocuments = vim.tbl_map(vim.uri_from_bufnr, vim.tbl_filter(file, loaded)) }
  if path then
    local row, column = unpack(api.nvim_win_get_cursor(0))
    params.textDocument, params.position = { uri = uri(path) }, position(row, column)
    if vim.fn.mode() == 'V' then -- whole lines; other kinds of selection are a few lines more
      local first, final = math.min(row, vim.fn.line('v')), math.max(row, vim.fn.line('v'))
      local text = table.concat(api.nvim_buf_get_lines(0, first - 1, final, true), '\n') .. '\n'
      params.selection = { start = position(first, 0), ['end'] = { line = final, character = 0 }, text = text }
    end
  end
  if not vim.deep_equal(params, last) then
    last = params
    notify('pollux/didChangeContext', params)
  end
end

local function moved() -- at most one message in 50 ms
  waiting = waiting or vim.defer_fn(context, 50)
end

---- 3. Diffs: show, edit, decide. Texts go there and back byte for byte. ----
local function scratch(name, text)
  local buf = api.nvim_create_buf(false, true)
  api.nvim_buf_set_name(buf, name)
  api.nvim_buf_set_lines(buf, 0, -1, true, vim.split(text, '\n', { plain = true }))
  return buf
end

local function text_of(buf)
  return table.concat(api.nvim_buf_get_lines(buf, 0, -1, true), '\n')
end

local function close(id, outcome) -- returns the text as it is now; nil for a diff that is not open
  local d = diffs[id]
  if not d then
    return nil
  end
  local content = text_of(d.after)
  diffs[id] = nil -- first, so that the end of the window is no second decision
  if outcome then
    notify('pollux/diffResolved', { diffId = id, outcome = outcome, content = outcome == 'accepted' and content or nil })
  end
  vim.schedule(function()
    pcall(api.nvim_buf_delete, d.before, { force = true })
    pcall(api.nvim_buf_delete, d.after, { force = true })
    vim.cmd('checktime') -- the agent writes the file, not the plugin
  end)
  return content
end

local function open_diff(p)
  local id = p.diffId
  local d = { path = p.filePath, before = scratch(id .. ':before ' .. p.filePath, p.oldText), after = scratch(id .. ':after ' .. p.filePath, p.newText) }
  diffs[id] = d
  vim.bo[d.after].buftype = 'acwrite'
  vim.cmd('tabnew | setlocal bufhidden=wipe | buffer ' .. d.before .. ' | diffthis | rightbelow vsplit | buffer ' .. d.after .. ' | diffthis')
  local fixed = (p.readOnly or '') ~= '' -- the agent takes no edits
  vim.bo[d.after].modified, vim.bo[d.after].modifiable = false, not fixed
  -- :w accepts, closing the window rejects, and pollux hears of each edit.
  local events = { BufWriteCmd = 'accepted', BufWinLeave = 'rejected', TextChanged = 'edited', TextChangedI = 'edited' }
  api.nvim_create_autocmd(vim.tbl_keys(events), {
    buffer = d.after,
    callback = function(e)
      if events[e.event] ~= 'edited' then
        return close(id, events[e.event]) and nil
      end
      if not fixed then
        notify('pollux/didChangeDiff', { diffId = id, version = vim.b[d.after].changedtick, content = text_of(d.after) })
      end
    end,
  })
  return { opened = true }
end

---- 4. What pollux asks and tells. ----
local requests = {
  ['pollux/openDiff'] = open_diff,
  ['pollux/closeDiff'] = function(p)
    local content = close(p.diffId)
    return content and { content = content }
  end,
}

local function receive(line)
  local ok, m = pcall(vim.json.decode, line)
  if not ok or type(m) ~= 'table' then -- pollux sends none such; a plugin must outlive it all the same
    return
  elseif m.method and m.id then -- a request: always answer
    local f = requests[m.method]
    local result = f and f(m.params)
    send({ id = m.id, result = result, error = not result and { code = f and -32602 or -32601, message = 'no ' .. m.method } or nil })
  elseif m.id == 1 and m.result then -- the answer to initialize
    for name, value in pairs(m.result.capabilities.experimental.pollux.env) do
      vim.env[name] = value -- an agent in this editor's terminal finds pollux by these
    end
    notify('initialized', vim.empty_dict())
    local group = api.nvim_create_augroup('example', {})
    api.nvim_create_autocmd({ 'BufEnter', 'CursorMoved', 'CursorMovedI', 'ModeChanged', 'BufDelete' }, { group = group, callback = moved })
    last = nil
    moved()
  end
end

---- 5. Start, and again when pollux has ended. It ends by itself when this process does. ----
local function shown() -- what a new pollux takes over
  local list = {}
  for id, d in pairs(diffs) do
    list[#list + 1] = { diffId = id, filePath = d.path, content = text_of(d.after) }
  end
  return #list > 0 and list or nil
end

local function start()
  local part = '' -- of a line that has not come whole
  job = vim.fn.jobstart({ 'pollux', 'lsp' }, {
    on_stdout = function(_, lines)
      for i, line in ipairs(lines) do
        part = part .. line
        if i < #lines then
          receive(part)
          part = ''
        end
      end
    end,
    on_exit = function()
      job = nil
      vim.defer_fn(start, 1000) -- a good plugin waits longer each time
    end,
  })
  send({
    id = 1,
    method = 'initialize',
    params = {
      processId = vim.fn.getpid(),
      workspaceFolders = { { uri = uri(vim.fn.getcwd()), name = 'project' } },
      initializationOptions = {
        pollux = { version = 1, context = true, openDiff = true, ide = { name = 'example', displayName = 'Example' }, openDiffs = shown() },
      },
    },
  })
end
start()
