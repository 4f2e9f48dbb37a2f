/** A titled frame around lines, as wide as the terminal allows. Pure. */
import { clip, pad } from './clip.ts'

interface BoxStyle {
  /** Null: no terminal. */
  readonly columns: number | null
  readonly unicode: boolean
}

const MAX_WIDTH = 100

/** Null: no terminal. */
export const boxWidth = (columns: number | null) => Math.min(MAX_WIDTH, (columns ?? 80) - 1)

export const innerWidth = (columns: number | null): number => boxWidth(columns) - 4

/** `lines`: printable; too long ones are cut in the middle. */
export function renderBox(
  title: string,
  lines: readonly string[],
  { columns, unicode }: BoxStyle,
): readonly string[] {
  const width = boxWidth(columns)
  const inner = innerWidth(columns)
  const [corner, across, down] = unicode ? ['┌┐└┘', '─', '│'] : ['++++', '-', '|']
  const [topLeft, topRight, bottomLeft, bottomRight] = corner
  const head = `${topLeft}${across} ${title} `
  return [
    `${head}${across.repeat(Math.max(0, width - head.length - 1))}${topRight}`,
    ...lines.map((line) => {
      const shown = clip(line, inner, { cut: 'middle', unicode })
      return `${down} ${pad(shown, inner)} ${down}`
    }),
    `${bottomLeft}${across.repeat(width - 2)}${bottomRight}`,
  ]
}
