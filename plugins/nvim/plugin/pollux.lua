-- pollux: makes Neovim an IDE for Gemini CLI. See :help pollux
if vim.g.loaded_pollux or vim.fn.has('nvim-0.7') == 0 then
  return
end
vim.g.loaded_pollux = 1

vim.api.nvim_create_user_command('Pollux', function(args)
  require('pollux.command').run(args)
end, {
  nargs = '*',
  range = true,
  bang = true,
  desc = 'Gemini CLI in this editor',
  complete = function(lead, line)
    return require('pollux.command').complete(lead, line)
  end,
})

-- Everything else is loaded after the first screen, if it is there: a file that
-- the user has changed stays when the others are uninstalled.
local function later()
  vim.defer_fn(function()
    if #vim.api.nvim_get_runtime_file('lua/pollux/init.lua', false) > 0 then
      require('pollux').autostart()
    end
  end, 20)
end

local group = vim.api.nvim_create_augroup('pollux_start', {})
vim.api.nvim_create_autocmd({ 'VimEnter', 'UIEnter' }, {
  group = group,
  callback = later,
})
if vim.v.vim_did_enter == 1 then -- loaded late, by a plugin manager
  later()
end
