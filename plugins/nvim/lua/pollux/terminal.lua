-- The agents' terminals: one for each agent and project.
local config = require('pollux.config')
local fail = require('pollux.say').fail
local M = {}

local api = vim.api

-- The command of an agent: what was typed, or the setting; with options alone, the setting's agent with them.
local function command_of(args)
  local cli = config.get().cli
  cli = type(cli) == 'string' and { cli } or vim.list_extend({}, cli)
  if #args == 0 then
    return cli
  end
  return args[1]:sub(1, 1) == '-' and vim.list_extend(cli, args) or args
end

-- The terminal in which an agent runs for this folder or one above it, nil without one.
local function running(name)
  local folder = vim.fn.getcwd() .. '/'
  for _, buf in ipairs(api.nvim_list_bufs()) do
    if vim.b[buf].pollux_cli == name and vim.startswith(folder, vim.b[buf].pollux_folder .. '/') and vim.fn.jobwait({ vim.bo[buf].channel }, 0)[1] == -1 then
      return buf
    end
  end
end

-- The window of a buffer in this tab page, nil without one.
local function window(buf)
  local win = buf and vim.fn.bufwinid(buf) or -1
  return win > 0 and win or nil
end

-- Opens a window for a terminal where the settings say, or takes that of another agent.
local function sidebar()
  for _, win in ipairs(api.nvim_tabpage_list_wins(0)) do
    if vim.b[api.nvim_win_get_buf(win)].pollux_cli then
      return api.nvim_set_current_win(win)
    end
  end
  local settings = config.get()
  if settings.split then
    return vim.cmd(settings.split)
  end
  local beside = settings.side == 'left' or settings.side == 'right'
  local first = settings.side == 'left' or settings.side == 'top'
  local room = beside and vim.o.columns or vim.o.lines
  local size = settings.width < 1 and math.floor(room * settings.width) or settings.width
  vim.cmd(('%s %s %dsplit'):format(first and 'topleft' or 'botright', beside and 'vertical' or '', math.max(1, math.min(size, room - 20))))
  vim.wo.winfixwidth, vim.wo.winfixheight = beside, not beside
end

-- Shows a terminal, and goes there.
local function show(buf)
  local win = window(buf)
  if win then
    api.nvim_set_current_win(win)
  else
    sidebar()
    api.nvim_win_set_buf(0, buf)
  end
  vim.cmd('startinsert')
end

local function start(cli, name)
  if vim.fn.executable(cli[1]) == 0 then
    local how = cli[1] == 'gemini' and ': npm install -g @google/gemini-cli' or ''
    return fail(('there is no command %q; install it first%s'):format(cli[1], how))
  end
  sidebar()
  vim.cmd('enew')
  local options = { env = vim.o.termguicolors and { COLORTERM = 'truecolor' } or nil }
  local ok, job = pcall(function()
    if vim.fn.has('nvim-0.11') == 1 then
      return vim.fn.jobstart(cli, vim.tbl_extend('force', options, { term = true }))
    end
    return vim.fn.termopen(cli, next(options) and options or vim.empty_dict())
  end)
  if not ok or job <= 0 then
    vim.cmd('bwipeout!')
    return fail(('%s cannot be started'):format(cli[1]))
  end
  vim.b.pollux_cli, vim.b.pollux_folder = name, vim.fn.getcwd()
  vim.bo.buflisted = false
  vim.cmd('startinsert')
end

--- Shows the terminal of an agent and goes there; the agent is started when it does not run for this folder.
function M.run(args)
  local cli = command_of(args)
  local name = vim.fn.fnamemodify(cli[1], ':t')
  local buf = running(name)
  if buf then
    return show(buf)
  end
  start(cli, name)
end

--- Hides the terminal of an agent where it is on show, else run.
function M.toggle(args)
  local win = window(running(vim.fn.fnamemodify(command_of(args)[1], ':t')))
  if not win then
    return M.run(args)
  elseif #api.nvim_tabpage_list_wins(0) == 1 then
    return fail('the terminal is the only window here')
  end
  api.nvim_win_close(win, false)
end

--- Goes to the terminal of an agent, and from there back to where the user was.
function M.focus(args)
  if window(running(vim.fn.fnamemodify(command_of(args)[1], ':t'))) == api.nvim_get_current_win() then
    return vim.cmd('wincmd p')
  end
  M.run(args)
end

return M
