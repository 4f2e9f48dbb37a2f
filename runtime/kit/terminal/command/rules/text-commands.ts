/** The commands that every program gets from its command table alone: `completion` and `manual`. */
import { SHELLS, type Command, type Flag, type ShellName } from './command.ts'

/** `flags` are those that every command of the program takes. */
export const createTextCommands = (program: string, flags: readonly Flag[] = []) =>
  ({
    completion: {
      words: ['completion'],
      summary: 'print a completion script for a shell',
      about: ['Prints a script that lets the shell complete commands, flags and their values.'],
      positionals: [
        {
          value: { name: 'SHELL', completes: 'choices', choices: SHELLS },
          help: 'bash, zsh or fish',
        },
      ],
      flags,
      examples: [
        {
          line: `${program} completion bash > /etc/bash_completion.d/${program}`,
          does: 'install it for bash',
        },
        { line: `source <(${program} completion bash)`, does: 'try it in this shell' },
      ],
    },
    manual: {
      words: ['manual'],
      summary: 'print the manual page',
      about: ['Prints the manual page in roff, as man reads it.'],
      positionals: [],
      flags,
      examples: [{ line: `${program} manual | man -l -`, does: 'read it' }],
    },
  }) as const satisfies Readonly<Record<string, Command>>

/** The arguments were checked. */
export const shellOf = ([named]: readonly string[]): ShellName =>
  SHELLS.find((name) => name === named) ?? 'bash'
