/** `flasher`: starts the subcommand that is named, or the wizard if there is none. */
import { WIZARD_LINE } from '#flasher/wizard/options.ts'
import type { wizard } from '#flasher/wizard/program.ts'
import { cli } from '#flasher/programs.ts'

/** Runs `flasher` and returns its exit code; errors are printed. */
export const flasher = (environment: Parameters<typeof wizard>[0]): Promise<number> =>
  cli(environment, {
    ...WIZARD_LINE,
    load: async () => (await import('#flasher/wizard/program.ts')).wizard,
  })
