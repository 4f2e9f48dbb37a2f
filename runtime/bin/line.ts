/** Picks the release line that the server programs serve: `FLASHER_LINE`, else the current one. */

/** The chosen line's programs; the other line's code is not even loaded. */
export async function loadLine(name: string | undefined) {
  switch (name ?? '') {
    case '':
    case 'current':
      return import('../lines/current/programs.ts')
    case 'earlier':
      throw new Error('FLASHER_LINE=earlier: the server of that line is not there yet')
    default:
      throw new Error(`FLASHER_LINE is current or earlier, not ${JSON.stringify(name)}`)
  }
}
