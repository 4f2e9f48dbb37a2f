/** Parses which loop devices are offered as disks, for trying a program out. Pure. */

/** `FLASHER_OFFER_LOOP`: all loop devices, or the named ones, separated by blanks. */
type Loops = 'none' | 'all' | readonly string[]

/** Empty or `0` is none, `1` is all, anything else is a list of paths. */
export function parseLoops(text: string): Loops {
  if (text === '' || text === '0') return 'none'
  return text === '1' ? 'all' : text.split(' ')
}

export const isOffered = (loops: Loops, path: string) => loops === 'all' || loops.includes(path)
