/** Facts in a frame, as the confirm screen shows what goes where. Pure. */
import { clip, pad } from '../../../../terminal/text/clip.ts'

interface BoxStyle {
  readonly columns: number
  readonly unicode: boolean
}

const WIDEST = 100

const widthOf = (columns: number) => Math.min(WIDEST, columns - 1)

/** Columns for a line within a frame. */
export const innerWidth = (columns: number): number => widthOf(columns) - 4

/** A titled frame around printable lines; too long ones are cut in the middle. */
export function renderBox(
  title: string,
  lines: readonly string[],
  { columns, unicode }: BoxStyle,
): readonly string[] {
  const width = widthOf(columns)
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

/** From one frame to the next. */
export const renderArrow = ({ columns, unicode }: BoxStyle): string =>
  `${' '.repeat(Math.floor(widthOf(columns) / 2))}${unicode ? '▼' : 'v'}`
