-- The plugin: one companion process for this editor. See :help pollux
local config = require('pollux.config')
local M = {}

local api = vim.api
local client -- of rpc.lua, nil without a companion
local state = { status = 'stopped', failures = 0, sessions = {}, pending = 0, env = {} }
local first_roots, roots -- told at the first start; told last
local wanted = false -- it should run

local function log(message)
  state.error = message
  require('pollux.say').fail(message)
end

--- Settings; see :help pollux-settings. Not needed where the defaults do.
function M.setup(options)
  config.set(options)
end

--- What is known of the companion: status, server (its version), sessions, pending, env, error.
function M.state()
  return state
end

-- Gives the terminals that are opened from now on what a CLI needs.
local function equip(p)
  for _, name in ipairs(p.unset or {}) do
    vim.env[name] = nil
    state.env[name] = nil
  end
  for name, value in pairs(p.set or {}) do
    vim.env[name] = value
    state.env[name] = value
  end
end

local function redraw()
  pcall(vim.cmd, 'redrawstatus!')
  pcall(api.nvim_exec_autocmds, 'User', { pattern = 'PolluxStatus', modeline = false })
end

-- Shows a file where the user is, without taking a window that is no file's.
local function open_document(p, reply)
  local path = p.uri and vim.uri_to_fname(p.uri)
  if not path then
    return reply(nil, { code = -32602, message = 'no file' })
  end
  local buf = vim.fn.bufadd(path)
  vim.bo[buf].buflisted = true
  if p.takeFocus and api.nvim_get_mode().mode:match('^[nt]') and vim.fn.getcmdwintype() == '' then
    local win = vim.fn.bufwinid(buf)
    if win > 0 then
      api.nvim_set_current_win(win)
    elseif vim.bo.buftype ~= '' or not pcall(api.nvim_win_set_buf, 0, buf) then
      vim.cmd('sbuffer ' .. buf)
    end
    if p.selection then
      local row = math.min(p.selection.start.line + 1, api.nvim_buf_line_count(buf))
      local line = api.nvim_buf_get_lines(buf, row - 1, row, false)[1] or ''
      pcall(api.nvim_win_set_cursor, 0, { row, require('pollux.text').byte(line, p.selection.start.character or 0) })
    end
  else
    vim.fn.bufload(buf)
  end
  reply({ opened = true })
end

-- A question comes when the user pauses: nobody who types shall answer it by accident.
local function ask(p, reply, open)
  if not open() then
    return -- taken back
  end
  if not require('pollux.pause').now() then
    vim.defer_fn(function()
      ask(p, reply, open)
    end, 100)
    return
  end
  vim.ui.select(p.choices or {}, { prompt = ('%s: %s'):format(p.title or 'pollux', p.message or '') }, function(choice)
    reply({ choice = choice or vim.NIL })
  end)
end

local requests = {
  ['pollux/openDiff'] = function(p, reply)
    require('pollux.diff').open(p, reply)
  end,
  ['pollux/closeDiff'] = function(p, reply)
    require('pollux.diff').close(p, reply)
  end,
  ['pollux/openDocument'] = open_document,
  ['pollux/saveDocument'] = function(p, reply)
    require('pollux.reload').save(p, reply)
  end,
  ['pollux/ask'] = ask,
  ['pollux/typeText'] = function(p, reply)
    require('pollux.send').type_text(p, reply)
  end,
}

local notifications = {
  ['pollux/didChangeEnv'] = equip,
  ['pollux/didChangeStatus'] = function(p)
    state.sessions, state.pending, state.paused = p.sessions or {}, p.pendingDiffs or 0, p.context == 'paused'
    state.agents, state.untold = p.agents or '', p.untold or ''
    redraw()
    require('pollux.reload').guard(#state.sessions > 0)
    require('pollux.context').touch(false) -- it may be a CLI in this terminal that has come
  end,
  ['pollux/didChangeBase'] = function(p)
    require('pollux.diff').rebase(p)
  end,
  ['pollux/didChangeProposal'] = function(p)
    require('pollux.diff').follow(p)
  end,
  ['pollux/filesChanged'] = function(p)
    require('pollux.reload').changed(p)
  end,
  ['window/showMessage'] = function(p)
    if p.type == 1 then
      state.error = p.message
    end
    require('pollux.say').say((tostring(p.message):gsub('^pollux: ', '')), p.type == 1 and vim.log.levels.ERROR or nil)
  end,
}

local function uris(list)
  local text = require('pollux.text')
  return vim.tbl_map(function(dir)
    return { uri = text.uri(dir), name = vim.fn.fnamemodify(dir, ':t') }
  end, list)
end

-- Tells which folders came and went.
local function folders()
  if not client or state.status ~= 'running' then
    return
  end
  local now = require('pollux.context').roots()
  local function missing(from, list)
    return vim.tbl_filter(function(dir)
      return not vim.tbl_contains(list, dir)
    end, from)
  end
  local added, removed = missing(now, roots), missing(roots, now)
  if #added + #removed > 0 then
    roots = now
    client.notify('workspace/didChangeWorkspaceFolders', { event = { added = uris(added), removed = uris(removed) } })
  end
end

local start_process

local function ended(code)
  local again = wanted and state.status ~= 'failed'
  client = nil
  require('pollux.context').stop()
  require('pollux.diagnostics').stop()
  require('pollux.diff').connect(nil)
  require('pollux.reload').guard(false)
  state.status, state.sessions = wanted and 'waiting' or 'stopped', {}
  redraw()
  if not again then
    return
  end
  -- The views stay: the companion that comes back hears of them.
  state.failures = state.failures + 1
  if state.failures == 4 then
    log(('the companion keeps ending (code %d); :Pollux log shows why'):format(code))
  end
  vim.defer_fn(function()
    if wanted and not client then
      start_process()
    end
  end, math.min(30000, 200 * 2 ^ (state.failures - 1)))
end

local function initialized(result)
  local experimental = vim.tbl_get(result, 'capabilities', 'experimental', 'pollux') or {}
  state.status, state.error = 'running', nil
  state.server = vim.tbl_get(result, 'serverInfo', 'version')
  equip({ set = experimental.env })
  client.notify('initialized', vim.empty_dict())
  require('pollux.context').start(function(message)
    if client then
      client.notify('pollux/didChangeContext', message)
    end
  end)
  require('pollux.diagnostics').start(function(found)
    if client then
      client.notify('pollux/didChangeDiagnostics', found)
    end
  end)
  folders()
  local mine = client
  vim.defer_fn(function()
    if client == mine then
      state.failures = 0 -- it has lived
    end
  end, 5000)
  redraw()
end

start_process = function()
  local command, problem = config.command()
  if not command then
    state.status = 'failed'
    return log(problem)
  end
  local diff, context = require('pollux.diff'), require('pollux.context')
  -- A companion takes over from one of the same folders, so they stay those of the first start.
  first_roots = first_roots or context.roots()
  roots = first_roots
  state.status = 'starting'
  local reason
  client, reason = require('pollux.rpc').start(command, {
    request = function(method, params, reply, open)
      local f = requests[method]
      if not f then
        return reply(nil, { code = -32601, message = 'the plugin does not know ' .. method })
      end
      local ok, err = pcall(f, params, reply, open)
      if not ok then
        state.error = tostring(err)
        reply(nil, { code = -32603, message = tostring(err) })
      end
    end,
    notification = function(method, params)
      if notifications[method] then
        notifications[method](params)
      end
    end,
    exit = ended,
  })
  if not client then
    state.status = 'failed'
    return log(('%s cannot be started: %s'):format(command[1], reason))
  end
  require('pollux.pause').start()
  require('pollux.reload').start()
  client.call('initialize', {
    processId = vim.fn.getpid(),
    clientInfo = { name = 'Neovim', version = tostring(vim.version and ('%d.%d.%d'):format(vim.version().major, vim.version().minor, vim.version().patch) or '') },
    workspaceFolders = uris(roots),
    capabilities = { experimental = { pollux = { version = 2, context = true, openDiff = true, env = true, types = true } } },
    initializationOptions = {
      pollux = { version = 2, ide = { name = 'neovim', displayName = 'Neovim' }, idePid = vim.fn.getpid(), openDiffs = diff.announce() },
    },
  }, function(result, err)
    if err then
      state.status = 'failed'
      return log(err.message)
    end
    initialized(result)
  end)
  diff.connect(client) -- what the user decides from now on is heard behind the announcement
end

--- Starts the companion; nothing when it runs. One that is just ending is started anew when it has.
function M.start()
  wanted = true
  if client then
    return
  end
  state.failures = 0
  local group = api.nvim_create_augroup('pollux', {})
  api.nvim_create_autocmd('VimLeavePre', {
    group = group,
    callback = function()
      M.stop(true)
    end,
  })
  local pending = false
  api.nvim_create_autocmd({ 'DirChanged', 'BufReadPost', 'BufFilePost', 'TabClosed', 'WinClosed', vim.fn.exists('##LspAttach') == 1 and 'LspAttach' or 'WinNew' }, {
    group = group,
    callback = function()
      if not pending then
        pending = true
        vim.defer_fn(function()
          pending = false
          folders()
        end, 100)
      end
    end,
  })
  start_process()
end

--- Whether the companion has not ended, also just now.
function M.alive()
  return client and client.alive()
end

--- Stops the companion in good order; open diffs are rejected. It does not wait: a signal that came
--- meanwhile would leave Neovim hanging, and one that ends waits for its children by itself. When Neovim is
--- leaving, CLIs of other terminals keep their connection, and what is open stays open for the next editor.
function M.stop(leaving)
  local diff = require('pollux.diff')
  if wanted and diff.waits() and not M.alive() then
    start_process() -- in place of one that was killed: no other knows what was typed since
  end
  wanted = false
  if client then
    for _, d in ipairs(diff.list()) do
      diff.report(d) -- what was typed just now
    end
    client.call('shutdown', { keep = leaving == true }, nil)
    client.notify('exit', nil)
  else
    state.status = 'stopped'
  end
  diff.connect(nil)
  for name in pairs(state.env) do
    vim.env[name] = nil
  end
  state.env = {}
  diff.clear()
end

--- Called when the editor is ready; starts what the settings say.
function M.autostart()
  local settings = config.get()
  if not settings.autostart or client or wanted then
    return
  end
  if #api.nvim_list_uis() == 0 and not settings.headless then
    return
  end
  for _, name in ipairs(vim.fn.argv()) do
    if vim.fn.fnamemodify(name, ':p'):match('[/\\]%.git[/\\]') then
      return -- an editor for a commit message
    end
  end
  if not config.command() then
    return -- said by :Pollux start and :checkhealth, not at every start of the editor
  end
  M.start()
end

--- Runs a command of the companion's: callback(result, err).
function M.execute(command, argument, callback)
  if not client or state.status ~= 'running' then
    return callback(nil, { message = 'the companion does not run; :Pollux start starts it' })
  end
  client.call('workspace/executeCommand', { command = command, arguments = argument and { argument } or {} }, callback)
end

--- A few characters for a status line: connected agents, waiting diffs, and which agents are told nothing.
function M.statusline()
  if state.status ~= 'running' then
    return ''
  end
  local waiting = state.pending > 0 and (' ±%d'):format(state.pending) or ''
  local untold = (state.untold or '') ~= '' and (' not told: %s'):format(state.untold) or ''
  local agents = (state.agents or '') ~= '' and state.agents or 'no agent'
  return agents .. waiting .. untold .. (state.paused and ' paused' or '')
end

return M
