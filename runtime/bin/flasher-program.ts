/** `flasher`: starts the subcommand that is named, or the wizard if there is none. */
import { WIZARD_LINE } from '../lines/current/wizard/options.ts'
import type { wizard } from '../lines/current/wizard/program.ts'
import { cli } from '../lines/earlier/programs.ts'

/** Returns the exit code. */
export const flasher = (environment: Parameters<typeof wizard>[0]): Promise<number> =>
  cli(environment, {
    ...WIZARD_LINE,
    load: async () => (await import('../lines/current/wizard/program.ts')).wizard,
  })
