/** The question before the power of a machine is cut: what ends with it, and what else hangs on its outlet. */
import { fill } from '../../../../kit/texts/text.ts'
import { banner } from '../../../../kit/web/ui/elements.ts'
import { hidden } from '../../../../kit/web/ui/fields.ts'
import { fillHtml, html, type Html } from '../../../../kit/web/ui/html.ts'
import { renderCurlBlock, type CurlCall } from '../../../pages/curl-block.ts'
import { machinePath } from '../../../pages/machines/machines-list.ts'
import { renderQuestion } from '../../../pages/question.ts'
import { PAGES } from '../../../texts/texts.ts'
import type { Machine } from '../../rules/machine.ts'
import { nameOf } from '../view/machine-view.ts'
import type { CurrentContext } from '../view/page-context.ts'
import type { PowerChoice } from './power-buttons.ts'
import { callPower } from './power-calls.ts'
import { listNames } from './power-card.ts'

const t = PAGES.power.question

interface CutQuestion {
  readonly machine: Machine
  readonly choice: PowerChoice
  /** Machines that lose power while their disk is written. */
  readonly writing: readonly string[]
  readonly sharing: readonly string[]
  readonly runs: ReadonlySet<string>
  /** Asked once already, and a disk is being written. */
  readonly isSecond: boolean
}

/** Asked twice if a disk is being written. */
export function renderCutQuestion(context: CurrentContext, asked: CutQuestion): Html {
  const { machine, choice, writing, sharing, runs, isSecond } = asked
  const asksAgain = writing.length > 0 && !isSecond
  const name = html`<bdi>${nameOf(machine)}</bdi>`
  const warn = (text: typeof t.writing | typeof t.shared, macs: readonly string[]) =>
    macs.length === 0
      ? null
      : banner('needs-you', fillHtml(text, { names: listNames(context, macs) }))
  return renderQuestion({
    title: isSecond ? t.twice : fillHtml(t.titles[titleOf(choice)], { name }),
    body: html`${warn(t.writing, writing)} ${isSecond ? null : html`<p>${t.text}</p>`}
    ${warn(t.shared, sharing)}`,
    command: renderCurlBlock(context, [callCut(asked)]),
    form: {
      action: context.event.url.pathname,
      fields: html`${hidden({ choice, confirm: 'yes', even: isSecond ? '1' : null })}
      ${isSecond ? keepRuns(runs) : null}`,
      cancel: machinePath(machine.mac),
      button: html`<button class="danger">${asksAgain ? t.next : buttonOf(asked)}</button>`,
    },
  })
}

/** The second answer includes what is being written. */
function callCut({ machine, choice, isSecond }: CutQuestion): CurlCall {
  const call = callPower(machine.mac, choice)
  return isSecond ? { ...call, body: { ...call.body, even_while_writing: true } } : call
}

/** The answer is about the runs that the question named, and none that begins later. */
export const RUNS_FIELD = 'runs'

export const keepRuns = (runs: ReadonlySet<string>): Html =>
  hidden({ [RUNS_FIELD]: [...runs].join(' ') })

export const readRuns = (form: URLSearchParams): ReadonlySet<string> =>
  new Set((form.get(RUNS_FIELD) ?? '').split(' '))

const buttonOf = ({ choice, isSecond }: CutQuestion): string =>
  isSecond ? t.cut : t.buttons[choice === 'off' ? 'off' : 'restart']

export const titleCut = (choice: PowerChoice, name: string): string =>
  fill(t.titles[titleOf(choice)], { name })

const titleOf = (choice: PowerChoice): keyof typeof t.titles =>
  choice === 'off' ? 'off' : choice === 'network-restart' ? 'network' : 'restart'
