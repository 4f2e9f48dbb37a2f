/** Loads the release line that the server programs serve: `FLASHER_LINE`, `current` or `earlier`. */

interface LineStart {
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string | undefined>>
}

/**
 * Loads the programs of the line that is named. Help and version work whatever is set. Rejects with an
 * Error where there is no such line.
 */
export async function loadLine({ env, argv }: LineStart) {
  const name = env['FLASHER_LINE'] || 'current'
  if (name === 'earlier') {
    const { web } = await import('#server/earlier/server-program.ts')
    return { web }
  }
  const isAsking = argv.some((word) => ['--help', '-h', '--version'].includes(word))
  if (name === 'current' || isAsking) return import('#server/current/programs.ts')
  throw new Error(`FLASHER_LINE=${name} is unknown; it must be current or earlier`)
}
