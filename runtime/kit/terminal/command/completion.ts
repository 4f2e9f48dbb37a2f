/** Completion scripts made from a command table, one renderer per shell. */
import type { CommandLine, ShellName } from './rules/command.ts'
import { renderBashCompletion } from './completion/bash.ts'
import { renderFishCompletion } from './completion/fish.ts'
import { renderZshCompletion } from './completion/zsh.ts'

const RENDERERS = {
  bash: renderBashCompletion,
  zsh: renderZshCompletion,
  fish: renderFishCompletion,
} as const satisfies Record<ShellName, (line: CommandLine) => string>

export const renderCompletion = (line: CommandLine, shell: ShellName): string =>
  RENDERERS[shell](line)
