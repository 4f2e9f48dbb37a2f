/** What a restore changes, machine by machine, as its question shows it. */
import type { MachineDifference } from '#fleet/backup/rules/differences.ts'
import type { Differences } from '#fleet/backup/restore.ts'
import { fill, fillCount, pluralOf } from '#kit/texts/text.ts'
import { html, type Content, type Html } from '#kit/web/ui/html.ts'
import { PAGES } from '#server/texts/texts.ts'
import { readEventWords, renderFieldChanges, type EventWords } from '../view/event-words.ts'
import type { CurrentContext } from '../view/page-context.ts'

const t = PAGES.backups.restore.changes

/** The rest is folded. */
const MAX_IN_SIGHT = 10
/** Further ones are only counted. */
const MAX_MACHINES = 200
const MAX_SETTINGS = 20

/** Nothing where the backup does not say (null). */
export function renderDifferences(found: Differences | null, context: CurrentContext): Content {
  if (found === null) return null
  const { machines, settings } = found
  return html`${machines.length === 0 ? html`<p>${t.none}</p>` : renderMachines(found, context)}
  ${settings.length === 0 ? null : html`<p>${renderSettings(settings, readEventWords(context))}</p>`}`
}

function renderMachines(found: Differences, context: CurrentContext): Html {
  const { machines } = found
  const words = readEventWords(context)
  const render = (listed: Differences['machines']) =>
    listed.map((machine) => renderMachine(machine, words))
  const folded = machines.slice(MAX_IN_SIGHT, MAX_MACHINES)
  const more = machines.length - MAX_MACHINES
  return html`<h2>${fillCount(t.title, machines.length)}</h2>
    <p>${sayCounts(found)}</p>
    <ul class="rows differences">
      ${render(machines.slice(0, MAX_IN_SIGHT))}
    </ul>
    ${
      folded.length === 0
        ? null
        : html`<details>
            <summary>${fillCount(t.rest, machines.length - MAX_IN_SIGHT)}</summary>
            <ul class="rows differences">
              ${render(folded)}
              ${more > 0 ? html`<li class="dim">${fill(t.more, { count: more })}</li>` : null}
            </ul>
          </details>`
    }`
}

/** `2 are forgotten, 1 comes back, 40 stay as they are.` */
function sayCounts({ machines, unchanged }: Differences): string {
  const counts = Map.groupBy(machines, ({ kind }) => kind)
  const said = (['goes', 'returns', 'changes'] as const).map(
    (kind) => [t.counts[kind], counts.get(kind)?.length ?? 0] as const,
  )
  return `${[...said, [t.counts.unchanged, unchanged] as const]
    .filter(([, count]) => count > 0)
    .map(([text, count]) => fillCount(text, count))
    .join(', ')}.`
}

function renderMachine({ mac, name, kind, changes }: MachineDifference, words: EventWords): Html {
  const label = html`<bdi>${name ?? mac}</bdi>`
  return html`<li>
    <div class="grow">
      <p>
        ${kind === 'returns' ? html`<strong>${label}</strong>` : html`<a href="/ui/machines/${mac}">${label}</a>`}
        ${name === null ? null : html`<code class="small dim">${mac}</code>`}
        <span class="dim">${t.kinds[kind]}</span>
      </p>
      ${renderFieldChanges(changes, mac, words, true)}
    </div>
  </li>`
}

function renderSettings(names: readonly string[], { findSetting }: EventWords): string {
  const shown = names.slice(0, MAX_SETTINGS).map((name) => findSetting(name) ?? name)
  const more = names.length - shown.length
  const listed = [...shown, ...(more > 0 ? [fill(t.more, { count: more })] : [])].join(', ')
  return fill(pluralOf(t.settings, names.length), { count: names.length, names: listed })
}
