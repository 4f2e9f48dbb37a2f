/** /ui/machines/file: changes names and labels of machines as a file says, after a preview of each line. */
import type { Answer } from '#kit/web/answers/answers.ts'
import { LIMITS } from '#kit/web/answers/limits.ts'
import type { Html } from '#kit/web/ui/html.ts'
import { formAt, pageAt, uploadAt } from '#server/pages/context-routes.ts'
import { MACHINES_PATH, MACHINES_TRAIL } from '#server/pages/machines/machines-list.ts'
import { actOnMany, letOthersIn } from '#server/routes/many.ts'
import {
  createLinePlanner,
  parseMachineFile,
  type ChangedLine,
  type FileLine,
  type MachineFile,
} from './rules/machine-file.ts'
import type { CurrentContext } from '#server/current/view/page-context.ts'
import { APPLY_PATH, MACHINE_FILE_PATH } from './file-path.ts'
import { renderDone, renderFileForm, renderFilePreview, type DoneLine } from './file-preview.ts'

export const MACHINE_FILE_PAGES = [
  pageAt(
    MACHINE_FILE_PATH,
    'machines',
    (context: CurrentContext) => show(context, renderFileForm(null)),
    { reach: 'list' },
  ),
  uploadAt(MACHINE_FILE_PATH, 'machines', preview, { most: LIMITS.table, reach: 'list' }),
  formAt(APPLY_PATH, 'machines', apply, { reach: 'list' }),
]

const show = ({ show: render }: CurrentContext, body: Html): Promise<Answer> =>
  render({
    title: 'Import names and labels',
    section: MACHINES_PATH,
    trail: MACHINES_TRAIL,
    body,
  })

async function preview(context: CurrentContext, form: URLSearchParams): Promise<Answer> {
  const pasted = form.get('text') ?? ''
  const file = parseMachineFile(form.get('file') || pasted)
  if (!file.ok) return await show(context, renderFileForm(file.refusal, pasted))
  const lines = await planLines(context, file.value)
  const changes = lines.filter((line) => line.is === 'changed')
  const digest =
    changes.length === 0 ? null : context.services.previews.keep(context.by().actor, changes)
  return await show(context, renderFilePreview({ lines, ignored: file.value.ignored, digest }))
}

/** Unseen machines do not exist here; what an edit would refuse is refused now. */
async function planLines(context: CurrentContext, file: MachineFile): Promise<readonly FileLine[]> {
  const machines = await context.site.machines.list()
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
    return await show(
      context,
      renderFileForm(
        'This preview is gone, as the server was restarted or others made many since. Choose the file again.',
      ),
    )
  const targets = changes.map((line) => ({ mac: line.mac, parameters: toParameters(line) }))
  const request = { action: ACTION, parameters: {} }
  const { batch, results } = await actOnMany(site, request, targets, by())
  const done = results.map(({ mac, result, reason }): DoneLine => ({
    mac,
    refusal: result === 'missing' ? 'It no longer exists.' : reason,
  }))
  return await show(context, renderDone(done, batch))
}
