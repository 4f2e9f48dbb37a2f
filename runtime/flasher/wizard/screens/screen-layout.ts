/** Composes a screen: the header, notices, the list, and the prompt at the bottom. Pure. */
import { renderChoices, type Choices } from '#kit/terminal/prompt/choices.ts'
import type { FramedChoices, Question } from '#kit/terminal/prompt/question.ts'
import { clip } from '#kit/terminal/text/columns.ts'
import { pageRowsOf, renderMenu, type Menu } from '#kit/terminal/prompt/menu.ts'
import type { Frame, Size } from '#kit/terminal/prompt/painter.ts'
import { renderHeader, renderNotice, type Drawing, type MachineCode } from './header.ts'
import type { WizardState } from '../flow/flow.ts'
import { renderHelp, type HelpKind } from './help.ts'

export interface ScreenView {
  readonly menu: Menu
  /** Between header and list; cut to the width, and to `room` rows. */
  intro(size: Size, room: number): readonly string[]
}

/** The prompt and the blank line before it. */
const FOOT_ROWS = 4
const rowsBelow = (above: readonly string[], { rows }: Size) =>
  Math.max(1, rows - above.length - FOOT_ROWS)

/** For a longer list the introduction is cut short. */
const MIN_ROWS = 4

export function createQuestion(state: WizardState, view: ScreenView, drawing: Drawing): Question {
  const { menu } = view
  const top = (size: Size) => {
    const header = renderHeader(state, drawing, size)
    const least = menu.rows.length === 0 ? 0 : MIN_ROWS
    const room = Math.max(0, size.rows - header.length - FOOT_ROWS - least)
    return [...header, ...view.intro(size, room).slice(0, room)]
  }
  return {
    menu,
    help: (size) => renderHelp(state, { kind: kindOf(menu), keys: menu.keys }, drawing, size),
    pageRows: (size) => pageRowsOf(rowsBelow(top(size), size)),
    frame(menuState, size) {
      const above = top(size)
      const room = { ...drawing, columns: size.columns, rows: rowsBelow(above, size) }
      return appendCode(renderMenu(above, menu, menuState, room), drawing, size)
    },
  }
}

/** What is asked comes first: the code takes what is left. */
function appendCode(frame: Frame, { code, tty }: Drawing, size: Size): Frame {
  if (code === undefined || !tty) return frame
  const rows = size.rows - frame.lines.length
  return { ...frame, lines: [...frame.lines, ...code({ ...size, rows })] }
}

function kindOf({ rows, takesText, takesSeveral }: Menu): HelpKind {
  if (takesText === true) return 'text'
  if (rows.length === 0) return 'letters'
  return takesSeveral === true ? 'several' : 'list'
}

export interface NextChoice {
  readonly key: string
  readonly words: readonly string[]
  /** The first one begins with the key in brackets, if it can be chosen. */
  readonly cells: readonly string[]
  readonly refusal: string | null
}

export const nextChoice = (
  key: string,
  words: readonly string[],
  [does = '', ...more]: readonly string[],
): NextChoice => ({ key, words, cells: [`[${key}] ${does}`, ...more], refusal: null })

/** Beside the choices: message, titles, a blank line, what is wrong, keys. */
const CHOICE_ROWS = 5

export interface ChoiceView extends Pick<Choices<string>, 'message' | 'columns'> {
  /** For terminals that cannot redraw. */
  readonly prompt: string
  readonly choices: readonly NextChoice[]
  intro(size: Size): readonly string[]
}

export function createChoice(state: WizardState, view: ChoiceView, drawing: Drawing): Question {
  const { message, columns, prompt, intro } = view
  const free = view.choices.filter(({ refusal }) => refusal === null)
  const menu: Menu = {
    prompt,
    columns,
    rows: view.choices.map(({ cells, refusal }) => ({
      cells: refusal === null ? cells : [cells[0] ?? '', `(${refusal})`],
      refusal,
    })),
    keys: free.map(({ key, words }) => ({ key, words, does: null })),
    enter: free[0]?.key ?? null,
  }
  const list = createQuestion(
    state,
    { menu, intro: (size) => [...intro(size), message, ''] },
    drawing,
  )
  const above = (size: Size) => {
    const header = renderHeader(state, drawing, size)
    const room = size.rows - header.length - view.choices.length - CHOICE_ROWS
    return [...header, ...intro(size).slice(0, Math.max(0, room))]
  }
  const choices = view.choices.map(({ key, cells, refusal }) => ({ value: key, cells, refusal }))
  const framed = { message, columns, choices, hasHelp: true } as const
  return {
    ...list,
    help: (size) => renderHelp(state, { kind: 'choices', keys: [] }, drawing, size),
    choices: layOutChoices(framed, above, drawing),
  }
}

const layOutChoices = (
  choices: Choices<string>,
  above: (size: Size) => readonly string[],
  drawing: Drawing,
): FramedChoices => ({
  ...choices,
  above,
  frame(size) {
    const lines = above(size)
    const cursor = { row: lines.length, column: 0 }
    return { lines: [...lines, ...renderChoices(choices, size.columns, drawing)], cursor }
  },
})

export function layOutScreen(
  state: WizardState,
  body: readonly string[],
  drawing: Drawing,
  size: Size,
): Frame {
  const header = renderHeader(state, drawing, size)
  const room = size.rows - header.length
  // The newest is at the end.
  const shown = body.length <= room ? body : body.filter((line) => line !== '').slice(-room)
  return { lines: [...header, ...shown], cursor: null }
}

type ScreenCode = (state: WizardState, body: readonly string[], size: Size) => readonly string[]

/** Loads the way to the machine's page while the screen is shown; `onReady` draws again. */
export function openScreenCode(drawing: Drawing, onReady: () => void): ScreenCode {
  let render: MachineCode | null = null
  async function load() {
    render = await loadMachineCode(drawing)
    if (render !== null) onReady()
  }
  void load()
  return (state, body, size) => {
    if (render === null) return body
    const rows = size.rows - renderHeader(state, drawing, size).length - body.length
    return [...body, ...render({ ...size, rows })]
  }
}

/** Null: no server or MAC is known, or the terminal cannot redraw. */
export async function loadMachineCode(drawing: Drawing): Promise<MachineCode | null> {
  const { server, mac } = drawing.setting.identity
  if (!drawing.tty || server === null || mac === null) return null
  try {
    const { createMachineCode, findMachineAddress } = await import('./machine-code.ts')
    const address = findMachineAddress({ server, mac })
    return address === null ? null : createMachineCode(address, drawing)
  } catch {
    // The screen still says what matters.
    return null
  }
}

export const fitted = (
  lines: readonly string[],
  { columns }: Size,
  { unicode }: Pick<Drawing, 'unicode'>,
): readonly string[] => lines.map((line) => clip(line, columns - 1, { cut: 'end', unicode }))

/** A long text goes on in the next line, up to three. */
export const inFull = (texts: readonly string[], { columns }: Size): readonly string[] =>
  texts.flatMap((text) => renderNotice(text, columns - 1))
