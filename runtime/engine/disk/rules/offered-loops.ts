/** Parses which loop devices are offered as disks, for trying a program out. Pure. */

type Loops = 'none' | 'all' | readonly string[]

/** Empty or `0` is none, `1` is all, else paths separated by blanks. */
export function parseLoops(text: string): Loops {
  if (text === '' || text === '0') return 'none'
  return text === '1' ? 'all' : text.split(' ')
}

export const isOffered = (loops: Loops, path: string) => loops === 'all' || loops.includes(path)
