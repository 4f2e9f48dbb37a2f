/** POST /ui/runs/remove: asks which runs are removed, then removes them. */
import type { Answer } from '#kit/web/answers/answers.ts'
import { parseMac } from '#kit/net/rules/mac.ts'
import type { Run } from '#engine/inventory/rules/run.ts'
import { fillCount, pluralOf } from '#kit/foundation/text.ts'
import { localPath } from '#kit/web/answers/checked.ts'
import { banner } from '#kit/web/ui/elements.ts'
import { hidden } from '#kit/web/ui/fields.ts'
import { address, html, type Content, type Html } from '#kit/web/ui/html.ts'
import { renderTime } from '#kit/web/ui/times.ts'
import { removeRun } from './run-routes.ts'
import { removalAt } from '#server/pages/context-routes.ts'
import type { CurrentContext } from '#server/current/view/page-context.ts'
import type { CurlCall } from '#server/pages/curl-block.ts'
import { opensQuestion, renderAnswer, showRemoval } from '#server/pages/question.ts'
import { renderRunState } from '#server/current/view/run-table.ts'

const LIST = '/ui/runs'
export const RUN_REMOVAL_PATH = `${LIST}/remove`
/** A page of the list. */
const MAX_RUNS = 100
const MAX_SHOWN = 12

export const renderRunValue = ({ mac, id }: Pick<Run, 'mac' | 'id'>): string => `${mac}/${id}`

export const RUN_REMOVAL = removalAt(RUN_REMOVAL_PATH, 'admin', ask, remove, { reach: 'list' })

export const renderRemovalButton = (run: Run): Html =>
  html`<form class="inline" ${opensQuestion(RUN_REMOVAL_PATH)}>
    ${hidden({ confirm: 'ask', runs: renderRunValue(run) })}
    <button>Remove…</button>
  </form>`

export function renderRemoved(query: URLSearchParams): Content {
  const [removed, skipped] = ['removed', 'skipped'].map((name) => {
    const given = query.get(name) ?? ''
    return /^\d{1,3}$/.test(given) ? Number(given) : 0
  })
  return html`${removed ? banner('done', fillCount({ one: '1 run was removed.', other: '{count} runs were removed.' }, removed)) : null}
  ${skipped ? banner('needs-you', fillCount({ one: '1 run is still running and was not removed.', other: '{count} runs are still running and were not removed.' }, skipped)) : null}`
}

export function listSelected({ site }: CurrentContext, form: URLSearchParams): readonly Run[] {
  const values = [...new Set(form.getAll('runs'))].slice(0, MAX_RUNS)
  return values.flatMap((value) => {
    const [text = '', id = ''] = value.split('/')
    const mac = parseMac(text)
    return mac.ok ? (site.runs.find(mac.value, id) ?? []) : []
  })
}

const backOf = (form: URLSearchParams): string => localPath(form.get('back'), LIST)

async function ask(context: CurrentContext, form: URLSearchParams): Promise<Answer> {
  const selected = listSelected(context, form)
  const ended = selected.filter(({ result }) => result !== null)
  const cancel = backOf(form)
  const trail = html`<a href="${cancel}">Runs</a>`
  if (ended.length === 0) {
    const { title, text } =
      selected.length === 0
        ? { title: 'No runs selected', text: 'Select runs in the list and try again.' }
        : { title: 'Still running', text: 'A run can be removed once it has ended.' }
    const back = html`<a class="button" href="${cancel}" data-close>Back to the runs</a>`
    const body = renderAnswer(
      title,
      html`<p>${text}</p>
        ${back}`,
    )
    return await context.show({ title, trail, body })
  }
  return await showRemoval(context, {
    title: fillCount({ one: 'Remove this run?', other: 'Remove {count} runs?' }, ended.length),
    trail,
    body: html`${renderList(context, ended)}${
        ended.length === selected.length
          ? null
          : banner(
              'needs-you',
              fillCount(
                {
                  one: '1 selected run is still running and stays.',
                  other: '{count} selected runs are still running and stay.',
                },
                selected.length - ended.length,
              ),
            )
      }
      <p>
        ${pluralOf({ one: 'It is removed from the history for good, with its log. No machine and no disk is changed. An event records who removed it.', other: 'They are removed from the history for good, with their logs. No machine and no disk is changed. Events record who removed them.' }, ended.length)}
      </p>`,
    fields: html`${ended.map((run) => hidden({ runs: renderRunValue(run) }))}${hidden({ back: form.get('back') })}`,
    cancel,
    button: fillCount({ one: 'Remove run', other: 'Remove {count} runs' }, ended.length),
    calls: ended.length > MAX_SHOWN ? [] : ended.map(callRemove),
  })
}

const callRemove = ({ mac, id }: Run): CurlCall => ({
  method: 'DELETE',
  path: `/machines/${mac}/runs/${id}`,
  scope: 'admin',
})

const renderList = ({ nameOf, clock }: CurrentContext, runs: readonly Run[]): Html =>
  html`<ul class="rows">
    ${runs.slice(0, MAX_SHOWN).map(
      (run) =>
        html`<li>
          <span class="grow"
            >${renderRunState(run)} <bdi>${nameOf(run.mac)}</bdi>
            <span class="small dim"><bdi>${run.image?.name ?? 'unknown image'}</bdi></span></span
          ><span class="when">${renderTime(run.started_at ?? run.updated_at, clock())}</span>
        </li>`,
    )}
    ${runs.length > MAX_SHOWN ? html`<li class="dim">and ${runs.length - MAX_SHOWN} more</li>` : null}
  </ul>`

async function remove(context: CurrentContext, form: URLSearchParams): Promise<Answer> {
  const runs = listSelected(context, form)
  let removed = 0
  for (const { mac, id } of runs) {
    if ((await removeRun(context.site, context.event, mac, id)).ok) removed += 1
  }
  const back = new URL(backOf(form), 'http://localhost')
  const query = Object.fromEntries(back.searchParams)
  const skipped = runs.length - removed
  return context.goTo(
    address(back.pathname, { ...query, removed, skipped: skipped === 0 ? null : skipped }),
  )
}
