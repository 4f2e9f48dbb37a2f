/** The way to this machine's page for a phone: its address, and as a QR code where a screen has room. */
import { encode } from 'uqr'
import { clip } from '#kit/terminal/text/columns.ts'
import type { Size } from '#kit/terminal/prompt/painter.ts'
import type { TerminalStyle } from '#kit/terminal/text/terminal-style.ts'
import type { MachineIdentity } from '#flasher/order/rules/flash-choice.ts'

/** Modules. Readers need a light border, and terminals are dark. */
const BORDER = 1

/** Known to every terminal that can redraw. */
const [REVERSE, PLAIN] = ['\u001b[7m', '\u001b[0m']

/** Two modules above each other, by which of them are light. */
const HALVES = { both: '█', upper: '▀', lower: '▄', none: ' ' } as const

/** Null: no server is known. Capitals make the code smaller, and the server takes both. */
export function findMachineAddress({
  server,
  mac,
}: Pick<MachineIdentity, 'server' | 'mac'>): string | null {
  const url = server === null ? null : URL.parse(server)
  if (mac === null || url === null || !url.protocol.startsWith('http')) return null
  const short = `m/${mac.replaceAll(':', '')}`
  // A path in the base address keeps its case.
  return url.pathname === '/'
    ? `${url.origin}/${short}`.toUpperCase()
    : `${url.origin}${url.pathname.replace(/\/$/, '')}/${short}`
}

/** Where rows are short, the code is left out first, then all of it. */
export function createMachineCode(address: string, { unicode }: Pick<TerminalStyle, 'unicode'>) {
  const { data } = encode(address, { ecc: 'L', border: BORDER })
  const code = unicode ? renderHalves(data) : renderWhole(data)
  const shown = address === address.toUpperCase() ? address.toLowerCase() : address
  const text = `On a phone: ${shown}`
  return ({ columns, rows }: Size): readonly string[] => {
    if (rows < 2) return []
    const line = clip(text, columns - 1, { cut: 'middle', unicode })
    const width = data.length * (unicode ? 1 : 2)
    const fits = code.length + 2 <= rows && width < columns
    return fits ? ['', line, ...code] : ['', line]
  }
}

function renderHalves(modules: readonly (readonly boolean[])[]): readonly string[] {
  const rows: string[] = []
  for (let at = 0; at < modules.length; at += 2) {
    const [above = [], below = []] = [modules[at], modules[at + 1]]
    rows.push(above.map((isDark, x) => HALVES[nameOf(!isDark, below[x] === false)]).join(''))
  }
  return rows
}

const nameOf = (isUpper: boolean, isLower: boolean): keyof typeof HALVES =>
  isUpper ? (isLower ? 'both' : 'upper') : isLower ? 'lower' : 'none'

/** Blanks in reverse video work on every terminal; two of them are about square. */
const renderWhole = (modules: readonly (readonly boolean[])[]): readonly string[] =>
  modules.map((row) =>
    row
      .map((isDark) => (isDark ? '0' : '1'))
      .join('')
      .replaceAll(/0+|1+/g, (run) => {
        const blanks = '  '.repeat(run.length)
        return run.startsWith('1') ? `${REVERSE}${blanks}${PLAIN}` : blanks
      }),
  )
