/** /ui/machines/file: changes names and labels of machines as a file says, after a preview of each line. */
import type { Mac } from '#kit/net/rules/mac.ts'
import type { Machine } from './rules/machine.ts'
import type { Answer } from '#kit/web/answers/answers.ts'
import { LIMITS } from '#kit/web/answers/limits.ts'
import { type Html, html, type Content } from '#kit/web/ui/html.ts'
import { formAt, pageAt, uploadAt } from '#server/pages/context-routes.ts'
import { MACHINES_PATH, MACHINES_TRAIL, machinePath } from '#server/pages/machines/machines-list.ts'
import { actOnMany, letOthersIn } from '#server/routes/many.ts'
import {
  createLinePlanner,
  parseMachineFile,
  findTwins,
  type ChangedLine,
  type FileLine,
  type MachineFile,
} from './rules/machine-file.ts'
import type { CurrentContext } from '#server/current/view/page-context.ts'
import { printable } from '#kit/foundation/printable.ts'
import { fillCount } from '#kit/foundation/text.ts'
import { banner } from '#kit/web/ui/elements.ts'
import { areaField, hidden } from '#kit/web/ui/fields.ts'
import { batchPath } from '#server/current/view/batch-view.ts'

export const MACHINE_FILE_PATH = `${MACHINES_PATH}/file`
const APPLY_PATH = `${MACHINE_FILE_PATH}/apply`

const MAX_PASTE = 100_000

const renderFileForm = (error: string | null, pasted = ''): Html =>
  html`${error === null ? null : banner('failed', error)}
    <section class="card stack">
      <p>
        ${'Download the machines as CSV, change their names, labels, racks and slots in a spreadsheet, and bring the file back here. You see a preview before anything changes.'}
      </p>
      <p>
        ${'The first line names the columns: mac, and any of name, labels, rack and slot. Other columns are ignored. An empty cell removes the value. A missing column changes nothing. Separate labels with commas.'}
      </p>
      <p><a class="button" href="/machines.csv">Download as CSV</a></p>
      <form method="post" action="${MACHINE_FILE_PATH}" enctype="multipart/form-data">
        <div class="field">
          <label for="file">File</label>
          <input
            type="file"
            id="file"
            name="file"
            accept=".csv,.tsv,.txt,text/csv"
            aria-describedby="file-hint"
          />
          <p class="hint" id="file-hint">
            CSV in UTF-8, separated by commas, semicolons or tabs, of at most 10 MB.
          </p>
        </div>
        ${areaField({ name: 'text', label: 'Or paste the table', value: pasted.length > MAX_PASTE ? '' : pasted, rows: 8 })}
        <button class="primary">Preview</button>
      </form>
    </section>`

/** In the order of display: first what needs a look. */
const KINDS = ['changed', 'refused', 'twice', 'unknown', 'same'] as const

const MAX_LISTED = 100

const MACHINE_FILE_COUNTS = {
  changed: { one: '1 line will change a machine', other: '{count} lines will change machines' },
  refused: { one: '1 line is refused', other: '{count} lines are refused' },
  twice: {
    one: '1 line names a machine that is in the file twice',
    other: '{count} lines name machines that are in the file twice',
  },
  unknown: {
    one: '1 line names an unknown machine',
    other: '{count} lines name unknown machines',
  },
  same: {
    one: '1 line changes nothing',
    other: '{count} lines change nothing',
  },
} as const

const GROUPS = {
  changed: 'Will change',
  refused: 'Refused',
  twice: 'Twice in the file',
  unknown: 'Unknown MAC address',
  same: 'Same as now',
} as const

function renderFilePreview(preview: {
  readonly lines: readonly FileLine[]
  /** By machine: another one with its new name. */
  readonly twins: ReadonlyMap<string, Mac>
  readonly ignored: readonly string[]
  /** Finds the changes again; null: none. */
  readonly digest: string | null
}): Html {
  const { lines, twins, ignored, digest } = preview
  const groups = KINDS.map((kind) => [kind, lines.filter(({ is }) => is === kind)] as const)
  const shown = groups.filter(([, found]) => found.length > 0)
  const changes = lines.filter(({ is }) => is === 'changed').length
  return html`<section class="card stack">
    <ul>
      ${shown.map(([kind, { length }]) => html`<li>${fillCount(MACHINE_FILE_COUNTS[kind], length)}.</li>`)}
    </ul>
    ${digest === null ? html`<p>Nothing would change.</p>` : null} ${renderIgnored(ignored)}
    <form method="post" action="${APPLY_PATH}">
      <div class="row">
        <a class="button" href="${MACHINE_FILE_PATH}">Choose another file</a>
        ${
          digest === null
            ? null
            : html`${hidden({ digest })}<button class="primary">
                  ${fillCount({ one: 'Change 1 machine', other: 'Change {count} machines' }, changes)}
                </button>`
        }
      </div>
    </form>
    ${shown.map(([kind, found]) => renderGroup(GROUPS[kind], found, (line) => renderLine(line, twins)))}
  </section>`
}

const MAX_IGNORED = 20

const renderIgnored = (names: readonly string[]): Content =>
  names.length === 0
    ? null
    : html`<p class="dim">
        These columns are ignored: ${names.slice(0, MAX_IGNORED).map(shownName).join(', ')}.
      </p>`

const shownName = (name: string): string => printable(name.trim().slice(0, 40))

const renderGroup = <Row>(title: string, rows: readonly Row[], render: (row: Row) => Html): Html =>
  html`<h2>${title} (${rows.length})</h2>
    <ul class="rows">
      ${rows.slice(0, MAX_LISTED).map(render)}
      ${
        rows.length > MAX_LISTED
          ? html`<li class="dim">and ${rows.length - MAX_LISTED} more</li>`
          : null
      }
    </ul>`

const renderLine = (line: FileLine, twins: ReadonlyMap<string, Mac>): Html =>
  html`<li>
    <span class="grow"
      ><span class="small dim">Line ${line.line}</span>
      ${renderMac(line)}${line.is === 'changed' ? [...renderChanges(line), renderTwin(twins.get(line.mac))] : null}${
        line.is === 'refused' ? html`<br /><span class="small warning">${line.reason}</span>` : null
      }</span
    >
  </li>`

const renderMac = ({ is, mac }: FileLine): Html =>
  is === 'changed' || is === 'same'
    ? html`<a class="mono" href="${machinePath(mac)}">${mac}</a>`
    : html`<code>${printable(mac)}</code>`

const renderTwin = (other: Mac | undefined): Content =>
  other === undefined
    ? null
    : html`<br /><span class="small warning"
          >Another machine has this name as well: <code>${other}</code></span
        >`

const renderChanges = ({ before, after }: ChangedLine): readonly Content[] => [
  before.name === after.name
    ? null
    : renderChange('Name', before.name ?? 'none', after.name ?? 'none'),
  before.labels.join(',') === after.labels.join(',')
    ? null
    : renderChange('Labels', before.labels.join(', ') || 'none', after.labels.join(', ') || 'none'),
]

const renderChange = (what: string, before: string, after: string): Html =>
  html`<br /><span class="small"
      >${what}: <bdi>${printable(before)}</bdi> →
      <strong><bdi>${printable(after)}</bdi></strong></span
    >`

interface DoneLine {
  readonly mac: string
  readonly refusal: string | null
}

/** `batch`: the path for following and undoing; null: none. */
function renderDone(lines: readonly DoneLine[], batch: string | null): Html {
  const skipped = lines.filter(({ refusal }) => refusal !== null)
  const done = fillCount(
    { one: '1 machine was changed', other: '{count} machines were changed' },
    lines.length - skipped.length,
  )
  return html`${banner(skipped.length === 0 ? 'done' : 'needs-you', `${done}.`)}
    <section class="card stack">
      <div class="row">
        ${batch === null ? null : html`<a class="button primary" href="${batchPath(batch)}">This batch, with Undo</a>`}
        <a class="button" href="${MACHINES_PATH}">Back to machines</a>
      </div>
      ${
        skipped.length === 0
          ? null
          : renderGroup(
              fillCount(
                {
                  one: '1 machine was left as it is',
                  other: '{count} machines were left as they are',
                },
                skipped.length,
              ),
              skipped,
              renderSkipped,
            )
      }
    </section>`
}

const renderSkipped = ({ mac, refusal }: DoneLine): Html =>
  html`<li>
    <span class="grow"
      ><a class="mono" href="${machinePath(mac)}">${mac}</a><br />
      <span class="small warning">${refusal}</span></span
    >
  </li>`

export const MACHINE_FILE_PAGES = [
  pageAt(
    MACHINE_FILE_PATH,
    'machines',
    (context: CurrentContext) => show(context, renderFileForm(null)),
    { reach: 'list' },
  ),
  uploadAt(MACHINE_FILE_PATH, 'machines', showPreview, { most: LIMITS.table, reach: 'list' }),
  formAt(APPLY_PATH, 'machines', apply, { reach: 'list' }),
]

const show = ({ show: render }: CurrentContext, body: Html): Promise<Answer> =>
  render({
    title: 'Import CSV',
    trail: MACHINES_TRAIL,
    body,
  })

async function showPreview(context: CurrentContext, form: URLSearchParams): Promise<Answer> {
  const pasted = form.get('text') ?? ''
  const file = parseMachineFile(form.get('file') || pasted)
  if (!file.ok) return await show(context, renderFileForm(file.refusal, pasted))
  const machines = await context.site.machines.list()
  const lines = await planLines(context, file.value, machines)
  const twins = findTwins(lines, machines)
  const changes = lines.filter((line) => line.is === 'changed')
  const digest =
    changes.length === 0 ? null : context.services.previews.keep(context.by().actor, changes)
  return await show(
    context,
    renderFilePreview({ lines, twins, ignored: file.value.ignored, digest }),
  )
}

/** Unseen machines do not exist here; what an edit would refuse is refused now. */
async function planLines(
  context: CurrentContext,
  file: MachineFile,
  machines: readonly Machine[],
): Promise<readonly FileLine[]> {
  const known = new Map(machines.map((machine) => [machine.mac, machine]))
  const plan = createLinePlanner(file, (mac) => known.get(mac) ?? null)
  const lines: FileLine[] = []
  for (const [at, row] of file.rows.entries()) {
    const line = plan(row)
    lines.push(line.is === 'changed' ? await judge(context, line) : line)
    await letOthersIn(at)
  }
  return lines
}

/** By the rules that carry it out. */
async function judge({ site, by }: CurrentContext, line: ChangedLine): Promise<FileLine> {
  const request = { action: ACTION, parameters: toParameters(line), isDryRun: true }
  const { before: _before, after: _after, ...base } = line
  const acted = await site.fleet.act(line.mac, request, by())
  if (acted.result === 'missing') return { ...base, is: 'unknown' }
  return acted.result === 'refused' ? { ...base, is: 'refused', reason: acted.reason } : line
}

const ACTION = 'name'

/** Only while name and labels are as shown. */
const toParameters = ({ before, after }: ChangedLine) => ({
  name: after.name,
  labels: [...after.labels],
  before: { name: before.name, labels: [...before.labels] },
})

async function apply(context: CurrentContext, form: URLSearchParams): Promise<Answer> {
  const { site, services, by } = context
  const changes = services.previews.take(by().actor, form.get('digest') ?? '')
  if (changes === null)
    return await show(context, renderFileForm('This preview has expired. Choose the file again.'))
  const targets = changes.map((line) => ({ mac: line.mac, parameters: toParameters(line) }))
  const request = { action: ACTION, parameters: {} }
  const { batch, results } = await actOnMany(site, request, targets, by())
  const done = results.map(({ mac, result, reason }): DoneLine => ({
    mac,
    refusal: result === 'missing' ? 'It no longer exists.' : reason,
  }))
  return await show(context, renderDone(done, batch))
}
