-- The settings, from vim.g.pollux and setup(); see :help pollux-settings
local M = {}

local defaults = {
  command = nil, -- the pollux to run: a path, or a list with arguments; found by itself when nil
  autostart = true, -- start with the editor
  headless = false, -- also without a user interface
  focus = 'idle', -- when a diff may take the focus: 'now', 'idle' or 'never'
  idle = 1000, -- how long without a key is idle, in milliseconds
  cli = 'gemini', -- what :Pollux run starts: a name, or a list with arguments
  layout = nil, -- of a diff: 'vertical' (side by side), 'horizontal' (one above the other), 'unified' or 'terminal' (beside the agent's); nil is as in 'diffopt', and as it fits
  side = 'right', -- where its window opens: 'right', 'left', 'bottom' or 'top'
  width = 0.4, -- how wide, or how high, that is: a share of the screen, or columns or lines
  split = nil, -- a command that opens it instead, such as 'vsplit'
  notify = true, -- say that a diff waits
  mappings = {}, -- keys in the windows of a diff, see M.mappings
}

-- What keys in a diff do; a value of false takes one away.
local mappings = {
  accept = 'ZZ',
  reject = false, -- :q and ZQ do it without a mapping
  accept_all = false,
  next = false, -- the next of those that wait
  keep = false, -- in a conflict: the proposal stands
  take = false, -- the file's lines stand
}

local own = {}

--- Takes settings that go before vim.g.pollux.
function M.set(options)
  own = vim.tbl_extend('force', own, options or {})
end

--- Returns the settings as they are now.
function M.get()
  local global = type(vim.g.pollux) == 'table' and vim.g.pollux or {}
  return vim.tbl_extend('force', defaults, global, own)
end

--- The keys in a diff by what they do, false for none.
function M.mappings()
  local own_mappings = M.get().mappings
  return vim.tbl_extend('force', mappings, type(own_mappings) == 'table' and own_mappings or {})
end

--- The argument list of the companion, or nil and what to do.
function M.command()
  local command = M.get().command
  if type(command) == 'table' then
    return command
  end
  if type(command) == 'string' and command ~= '' then
    return { vim.fn.expand(command), 'lsp' }
  end
  -- `pollux install` writes which pollux it was.
  local ok, installed = pcall(require, 'pollux.installed')
  if ok and type(installed) == 'table' and vim.fn.executable(installed.command) == 1 then
    return { installed.command, 'lsp' }
  end
  if vim.fn.executable('pollux') == 1 then
    return { 'pollux', 'lsp' }
  end
  return nil, "there is no pollux in PATH; install it, or set vim.g.pollux = { command = '/path/to/pollux' }"
end

return M
