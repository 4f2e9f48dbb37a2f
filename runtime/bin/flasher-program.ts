/** `flasher`: the wizard where no command is named, and the subcommands. */
import { WIZARD_LINE } from '../lines/current/wizard/options.ts'
import type { wizard } from '../lines/current/wizard/program.ts'
import { cli } from '../lines/earlier/programs.ts'

/** Returns the exit code. */
export const flasher = (environment: Parameters<typeof wizard>[0]): Promise<number> =>
  cli(environment, {
    ...WIZARD_LINE,
    load: async () => (await import('../lines/current/wizard/program.ts')).wizard,
  })
