/** Loads the release line that the server programs serve: `FLASHER_LINE` must be the current one. */

interface Start {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly argv: readonly string[]
}

/** That line's programs. Help and version work whatever is set. */
export async function loadLine({ env, argv }: Start) {
  const name = env['FLASHER_LINE'] || 'current'
  const isAsking = argv.some((word) => ['--help', '-h', '--version'].includes(word))
  if (name === 'current' || isAsking) return import('../lines/current/programs.ts')
  throw new Error(
    `FLASHER_LINE=${name}: this release has only the server of the current line; unset it`,
  )
}
