/** A titled frame of a fixed size around lines of one emphasis each. Pure. */
import { displayWidth } from '#kit/foundation/printable.ts'
import { clip, pad } from '#kit/terminal/text/clip.ts'
import type { Ink } from '#kit/terminal/text/ink.ts'

export interface ScreenRow {
  /** Printable; cut at its end where it is too long. */
  readonly text: string
  readonly ink?: keyof Ink
}

export interface PaneStyle {
  readonly ink: Ink
  readonly unicode: boolean
}

export interface PaneRoom {
  readonly width: number
  /** The frame included. */
  readonly height: number
}

/** Left and right together. */
export const BORDER_WIDTH = 4

/** Brackets mark the pane that has the keys, as colours may be off. */
export function renderPaneBox(
  title: string,
  lines: readonly ScreenRow[],
  { width, height }: PaneRoom,
  isActive: boolean,
  { ink, unicode }: PaneStyle,
): readonly string[] {
  const [corner, across, down] = unicode ? ['┌┐└┘', '─', '│'] : ['++++', '-', '|']
  const [topLeft, topRight, bottomLeft, bottomRight] = corner
  const dye = isActive ? ink.here : ink.faint
  const inner = Math.max(1, width - BORDER_WIDTH)
  const name = clip(title, inner - 2, { cut: 'middle', unicode })
  const shown = isActive ? `[ ${name} ]` : `${across} ${name} ${across}`
  const rest = across.repeat(Math.max(0, width - 2 - displayWidth(shown)))
  const rows = Array.from({ length: Math.max(0, height - 2) }, (_, row) => lines[row])
  return [
    dye(`${topLeft}${shown}${rest}${topRight}`),
    ...rows.map((line) => {
      const text = pad(clip(line?.text ?? '', inner, { cut: 'end', unicode }), inner)
      const dyed = line?.ink === undefined ? text : ink[line.ink](text)
      return `${dye(down)} ${dyed} ${dye(down)}`
    }),
    dye(`${bottomLeft}${across.repeat(width - 2)}${bottomRight}`),
  ]
}
