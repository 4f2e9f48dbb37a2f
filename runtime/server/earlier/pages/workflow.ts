/** The workflow runs of a machine: a card on its page, and a page with the log of each. */
import type { Answer } from '#kit/web/answers/answers.ts'
import { printable, printableText } from '#kit/foundation/printable.ts'
import type { Mac } from '#kit/net/rules/mac.ts'
import type { WorkflowState } from '#fleet/workflow/online-workflows.ts'
import { readMac } from '#kit/web/answers/checked.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import {
  badge,
  banner,
  card,
  copyable,
  copyBlock,
  factList,
  type Tone,
} from '#kit/web/ui/elements.ts'
import { fillHtml, html, type Content, type Html } from '#kit/web/ui/html.ts'
import { refreshEvery, refreshOnNews } from '#kit/web/ui/refresh.ts'
import { renderTime, type Clock } from '#kit/web/ui/times.ts'
import { readRun } from '../routes/workflows.ts'
import type { Machine } from '../rules/machine.ts'
import { machinePath, MACHINES_PATH, MACHINES_TRAIL } from '#server/pages/machines/machines-list.ts'
import type { EarlierContext } from './machine-view.ts'
import { pageAt } from '#server/pages/context-routes.ts'
import { PAGES } from '#server/texts/texts.ts'

const t = PAGES.earlier.workflow

const MAX_SHOWN_LOG = 64 * 1024
const MAX_SHOWN_RUNS = 5

export const WORKFLOW_PAGES = [pageAt('/ui/machines/:mac/workflows/:run', 'read', show)]

const runPath = (mac: Mac, run: string) => `${machinePath(mac)}/workflows/${run}`

export function workflowCard(context: EarlierContext, machine: Machine): Content {
  const { mac, provisioning_mode, last_workflow_status } = machine
  if (provisioning_mode !== 'cijoe-online' && last_workflow_status === null) return null
  const runs = context.services.workflows.runs.list(mac).slice(0, MAX_SHOWN_RUNS)
  const clock = context.clock()
  const obstacle = findObstacle(machine)
  return html`<div ${refreshOnNews('workflow', machinePath(mac), 1000)}>
    ${card({
      title: t.card,
      body: html`${obstacle === null ? null : banner('needs-you', obstacle)}
      ${factList([
        [t.status, last_workflow_status],
        [t.started, renderTime(machine.last_workflow_run_at, clock, t.never)],
        [
          t.output,
          machine.last_workflow_output_path && copyable(machine.last_workflow_output_path),
        ],
      ])}
      ${
        runs.length === 0
          ? null
          : html`<ul>
              ${runs.map((run) => renderRun(mac, run, clock))}
            </ul>`
      }`,
    })}
  </div>`
}

function findObstacle(machine: Machine): string | null {
  if (machine.provisioning_mode !== 'cijoe-online') return null
  if (machine.cijoe_workflow_ref === null) return t.unset
  return machine.hostname === null && machine.boot_policy !== 'local' ? t.noHostname : null
}

const renderRun = (mac: Mac, { run, status, started_at, error }: WorkflowState, clock: Clock) =>
  html`<li>
    ${renderStatus(status)}
    <a href="${runPath(mac, run)}">${renderTime(started_at, clock, t.waiting)}</a>
    ${error === null ? null : html`<span class="dim">${printable(error)}</span>`}
  </li>`

const TONES = {
  queued: 'ready',
  running: 'running',
  completed: 'done',
  failed: 'failed',
  cancelled: 'failed',
} as const satisfies Record<WorkflowState['status'], Tone>

const renderStatus = (status: WorkflowState['status']): Html =>
  badge(TONES[status], t.states[status])

async function show(context: EarlierContext): Promise<Answer> {
  const { runs, folders } = context.services.workflows
  const mac = readMac(context.event)
  const id = readRun(context.event)
  const run = runs.find(mac, id)
  const log = await folders.readTail(mac, id, MAX_SHOWN_LOG)
  if (run === null && log === null) {
    throw refuse(404, `${mac} has no such workflow run`, {
      hint: 'Old runs are removed after a while.',
    })
  }
  const isRunning = run?.status === 'queued' || run?.status === 'running'
  return await context.show({
    title: t.title,
    section: MACHINES_PATH,
    trail: html`${MACHINES_TRAIL} / <a href="${machinePath(mac)}">${mac}</a>`,
    body: html`<div
      class="stack"
      ${refreshEvery('workflow-run', runPath(mac, id), isRunning ? 2 : null)}
    >
      ${run === null ? null : renderFacts(run, context.clock())}
      ${card({
        title: t.log,
        body:
          log === null || log === ''
            ? html`<p class="dim">${t.empty}</p>`
            : html`${copyBlock(printableText(log), t.log)}
                <p class="hint">
                  ${fillHtml(t.rest, { link: html`<a href="/machines/${mac}/workflows/${id}/log">${t.plain}</a>` })}
                </p>`,
      })}
    </div>`,
  })
}

const renderTarget = ({ host, finished_at }: WorkflowState): Content =>
  host === null ? (finished_at === null ? t.silent : null) : copyable(printable(host))

const renderFacts = (run: WorkflowState, clock: Clock): Html =>
  card({
    title: renderStatus(run.status),
    body: html`${run.error === null ? null : banner('failed', printable(run.error))}
    ${factList([
      [t.workflow, copyable(printable(run.workflow))],
      [t.target, renderTarget(run)],
      [t.started, renderTime(run.started_at, clock, t.waiting)],
      [t.ended, run.finished_at === null ? null : renderTime(run.finished_at, clock, '')],
    ])}`,
  })
