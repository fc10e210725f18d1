-- The colours of diffs, each a group that a colour scheme or the user may set.
local M = {}

local api = vim.api

local links = {
  PolluxLabel = 'StatusLine',
  PolluxConflict = 'WarningMsg',
  PolluxAdd = 'DiffAdd',
  PolluxChange = 'DiffChange',
  PolluxDelete = 'DiffDelete',
  PolluxText = 'DiffText',
  PolluxGone = 'DiffDelete',
}

-- What stands for the garish colours of an editor that nobody has configured.
local calm = {
  dark = {
    PolluxAdd = 'ctermbg=22 guibg=#12351f',
    PolluxChange = 'ctermbg=236 guibg=#262c36',
    PolluxDelete = 'ctermfg=240 ctermbg=NONE guifg=#5c6370 guibg=NONE',
    PolluxText = 'ctermbg=24 guibg=#24506e',
    PolluxGone = 'ctermfg=252 ctermbg=52 guifg=#c9d1d9 guibg=#3c1618',
  },
  light = {
    PolluxAdd = 'ctermbg=194 guibg=#d5f5dc',
    PolluxChange = 'ctermbg=255 guibg=#eef0f3',
    PolluxDelete = 'ctermfg=249 ctermbg=NONE guifg=#a8b0b8 guibg=NONE',
    PolluxText = 'ctermbg=153 guibg=#b4d8f8',
    PolluxGone = 'ctermfg=237 ctermbg=224 guifg=#373e47 guibg=#ffe1de',
  },
}

local ours = {} -- the groups that were given calm colours

-- Whether nobody has chosen colours for diffs: Neovim's own scheme, and no :highlight of anybody's.
local function unconfigured()
  local scheme, terminal = vim.g.colors_name, vim.env.TERM or ''
  local rich = vim.o.termguicolors or vim.env.COLORTERM or terminal:find('256') or terminal:find('direct')
  if scheme ~= nil and scheme ~= 'default' or not rich then
    return false
  end
  for _, group in ipairs({ 'DiffAdd', 'DiffChange', 'DiffDelete', 'DiffText' }) do
    if api.nvim_exec('verbose highlight ' .. group, true):find('\n\t') then -- where it was set last
      return false
    end
  end
  return true
end

--- Sets what nobody else has set.
function M.set()
  for group in pairs(ours) do
    vim.cmd('highlight clear ' .. group)
  end
  ours = {}
  local own = unconfigured() and calm[vim.o.background] or {}
  for group, default in pairs(links) do
    local fresh = vim.fn.hlexists(group) == 0 or api.nvim_exec('highlight ' .. group, true):find('cleared') ~= nil
    if own[group] and fresh then
      vim.cmd(('highlight %s %s'):format(group, own[group]))
      ours[group] = true
    else
      vim.cmd(('highlight default link %s %s'):format(group, default))
    end
  end
end

return M
