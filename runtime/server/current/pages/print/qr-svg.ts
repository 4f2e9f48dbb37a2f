/** A QR code as a drawing: each run of dark modules is one stroke. */
import { encode } from 'uqr'
import { html, type Html } from '#kit/web/ui/html.ts'

/** In modules; the label around it is white as well. */
const BORDER = 2

/** `label`: for screen readers. */
export function renderQr(text: string, label: string): Html {
  const { data, size } = encode(text, { ecc: 'M', border: BORDER })
  const strokes = data.flatMap((row, y) => listStrokes(row).map(([x, n]) => `M${x} ${y}h${n}`))
  return html`<svg class="qr" viewBox="0 -.5 ${size} ${size}" role="img" aria-label="${label}">
    <path stroke="#000" d="${strokes.join('')}" />
  </svg>`
}

function listStrokes(row: readonly boolean[]): readonly (readonly [at: number, count: number])[] {
  const text = row.map((isDark) => (isDark ? '1' : '0')).join('')
  return [...text.matchAll(/1+/g)].map(({ index, 0: dark }) => [index, dark.length])
}
