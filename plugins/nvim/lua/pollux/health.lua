-- :checkhealth pollux
local M = {}

function M.check()
  local h = vim.health or require('health')
  local start, ok = h.start or h.report_start, h.ok or h.report_ok
  local warn, error_ = h.warn or h.report_warn, h.error or h.report_error
  start('pollux')
  local pollux, config = require('pollux'), require('pollux.config')
  local command, problem = config.command()
  if not command then
    return error_(problem)
  end
  if vim.fn.executable(command[1]) == 0 then
    return error_(('%s cannot be run'):format(command[1]), { 'set vim.g.pollux.command to the path of pollux' })
  end
  ok(('companion command: %s'):format(table.concat(command, ' ')))
  local state = pollux.state()
  if state.status == 'running' then
    ok(('companion %s runs on port %s'):format(state.server, state.env.GEMINI_CLI_IDE_SERVER_PORT))
    if #state.sessions > 0 then
      ok(('%d CLIs are connected, %d diffs wait'):format(#state.sessions, state.pending))
    else
      warn('no CLI is connected', { 'start one with :Pollux run, or in any terminal in this folder' })
    end
  else
    error_('the companion is ' .. state.status, { ':Pollux start', ':Pollux log' })
  end
  if state.error then
    warn('last error: ' .. state.error)
  end
  local cli = config.get().cli
  cli = type(cli) == 'table' and cli[1] or cli
  if vim.fn.executable(cli) == 1 then
    ok('Gemini CLI: ' .. vim.fn.exepath(cli))
  else
    warn(('there is no command %q'):format(cli), { 'npm install -g @google/gemini-cli' })
  end
end

return M
