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
  refreshEvery,
  refreshOnNews,
  type Tone,
} from '#kit/web/ui/elements.ts'
import { html, type Content, type Html } from '#kit/web/ui/html.ts'
import { renderTime, type Clock } from '#kit/web/ui/times.ts'
import { readRun } from '../routes/workflows.ts'
import type { Machine } from '../rules/machine.ts'
import { machinePath, MACHINES_TRAIL } from '#server/pages/machines/machines-list.ts'
import type { EarlierContext } from './machine-view.ts'
import { pageAt } from '#server/pages/context-routes.ts'

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
      title: 'Workflow after the flash',
      body: html`${obstacle === null ? null : banner('needs-you', obstacle)}
      ${factList([
        ['Status', last_workflow_status],
        ['Started', renderTime(machine.last_workflow_run_at, clock, 'never')],
        [
          'Output',
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
  if (machine.cijoe_workflow_ref === null) return 'No workflow is set, so none will run.'
  return machine.hostname === null && machine.boot_policy !== 'local'
    ? 'Set a host name: the server learns the address of the flashed system only when the policy is local.'
    : null
}

const renderRun = (mac: Mac, { run, status, started_at, error }: WorkflowState, clock: Clock) =>
  html`<li>
    ${renderStatus(status)}
    <a href="${runPath(mac, run)}">${renderTime(started_at, clock, 'waiting')}</a>
    ${error === null ? null : html`<span class="dim">${printable(error)}</span>`}
  </li>`

const TONES = {
  queued: 'ready',
  running: 'running',
  completed: 'done',
  failed: 'failed',
  cancelled: 'failed',
} as const satisfies Record<WorkflowState['status'], Tone>

const WORKFLOW_STATES = {
  queued: 'waiting',
  running: 'running',
  completed: 'success',
  failed: 'failed',
  cancelled: 'failed',
} as const

const renderStatus = (status: WorkflowState['status']): Html =>
  badge(TONES[status], WORKFLOW_STATES[status])

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
    title: 'Workflow run',
    trail: html`${MACHINES_TRAIL} / <a href="${machinePath(mac)}">${mac}</a>`,
    body: html`<div
      class="stack"
      ${refreshEvery('workflow-run', runPath(mac, id), isRunning ? 2 : null)}
    >
      ${run === null ? null : renderFacts(run, context.clock())}
      ${card({
        title: 'Log',
        body:
          log === null || log === ''
            ? html`<p class="dim">Nothing yet.</p>`
            : html`${copyBlock(printableText(log), 'Log')}
                <p class="hint">
                  <a href="/machines/${mac}/workflows/${id}/log">Plain text</a>, the last 256 KiB.
                </p>`,
      })}
    </div>`,
  })
}

const renderTarget = ({ host, finished_at }: WorkflowState): Content =>
  host === null ? (finished_at === null ? 'not answering yet' : null) : copyable(printable(host))

const renderFacts = (run: WorkflowState, clock: Clock): Html =>
  card({
    title: renderStatus(run.status),
    body: html`${run.error === null ? null : banner('failed', printable(run.error))}
    ${factList([
      ['Workflow', copyable(printable(run.workflow))],
      ['Target', renderTarget(run)],
      ['Started', renderTime(run.started_at, clock, 'waiting')],
      ['Ended', run.finished_at === null ? null : renderTime(run.finished_at, clock, '')],
    ])}`,
  })
