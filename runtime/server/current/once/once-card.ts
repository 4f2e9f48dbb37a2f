/** The card of a machine's page that boots it into something else once, its question, and the fields of the same for many. */
import {
  ANSWER_MINUTES,
  isWaiting,
  ORDER_HOURS,
  type OnceOrder,
} from '#fleet/once/rules/once-order.ts'
import { hasAnswers, type NamedEntry } from '#fleet/once/rules/boot-entry.ts'
import type { Answer } from '#kit/web/answers/answers.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import { readMac } from '#kit/web/answers/checked.ts'
import { banner, foldedCard } from '#kit/web/ui/elements.ts'
import { hidden, selectField } from '#kit/web/ui/fields.ts'
import { address, fillHtml, html, STRONG, type Content, type Html } from '#kit/web/ui/html.ts'
import { renderTime } from '#kit/web/ui/times.ts'
import type { Machine } from '#server/current/machines/rules/machine.ts'
import { bootAfter } from '#server/current/power/power-posts.ts'
import { renderBootField } from '#server/current/power/power-card.ts'
import { nameOf } from '#server/current/view/machine-view.ts'
import type { CurrentContext } from '#server/current/view/page-context.ts'
import { renderCurlBlock } from '#server/pages/curl-block.ts'
import { isAsked, opensQuestion, renderQuestion } from '#server/pages/question.ts'
import { machinePath } from '#server/pages/machines/machines-list.ts'
import { ENTRIES_PATH, FIRMWARE_TEXTS } from './entries-page.ts'
import { createEntryFinder } from './once-routes.ts'
import { findOnceObstacle } from '#server/current/machines/rules/once.ts'

/** What it holds; refused entries are shown with the reason. */
export function renderOnceCard(context: CurrentContext, machine: Machine): Html {
  const { once } = machine
  return foldedCard({
    title: 'Boot something else once',
    id: 'once',
    about: 'A memory test, an installer, a rescue system',
    isOpen: once !== null,
    body: html`${once === null ? null : renderOrder(context, once)}
    ${isWaiting(once) ? null : renderChoice(context, machine)}`,
  })
}

/** A button of the page's first card cancels it. */
const renderOrder = (context: CurrentContext, { entry, ...once }: OnceOrder): Content =>
  once.used_at === null
    ? html`<p class="sentence">
        ${fillHtml('{entry} is booted once, at the next network boot. The order ends {time}.', {
          entry: html`<strong><bdi>${entry}</bdi></strong>`,
          time: renderTime(once.expires_at, context.clock()),
        })}
      </p>`
    : banner(
        'done',
        fillHtml('{entry} was booted {time}.', {
          entry: html`<strong><bdi>${entry}</bdi></strong>`,
          time: renderTime(once.used_at, context.clock()),
        }),
      )

function renderChoice(context: CurrentContext, machine: Machine): Html {
  const entries = context.services.entries.list()
  if (entries.length === 0) return html`<p>No <a href="${ENTRIES_PATH}">boot entries</a> yet.</p>`
  const judged = entries.map((entry) => ({ entry, why: findObstacle(context, machine, entry) }))
  const offered = judged.filter(({ why }) => why === null)
  const refused = judged.flatMap(({ entry, why }) => (why === null ? [] : [{ entry, why }]))
  return html`<p>
      Starts it at the next network boot, once. Image, disk and what the machine does on network
      boot stay. <a href="${ENTRIES_PATH}">Boot entries</a>
    </p>
    ${
      offered.length === 0
        ? null
        : html`<form ${opensQuestion(`${machinePath(machine.mac)}/do/once`)}>
            ${hidden({ confirm: 'ask' })} ${renderEntryField(offered.map(({ entry }) => entry))}
            <button>Boot once…</button>
          </form>`
    }
    ${
      refused.length === 0
        ? null
        : html`<ul class="small">
            ${refused.map(
              ({ entry, why }) =>
                html`<li>
                  <strong><bdi>${entry.name}</bdi></strong
                  >: ${why}
                </li>`,
            )}
          </ul>`
    }`
}

export const renderEntryField = (entries: readonly NamedEntry[]): Html =>
  selectField({
    name: 'entry',
    label: 'Boot entry',
    value: entries[0]?.name ?? '',
    options: entries.map(({ name, processor, firmware }) => ({
      value: name,
      text: `${name} (${processor}, ${FIRMWARE_TEXTS[firmware]})`,
    })),
  })

const findObstacle = ({ services }: CurrentContext, machine: Machine, { name }: NamedEntry) =>
  findOnceObstacle(machine, name, createEntryFinder(services)(name), {
    findTemplate: (each) => services.templates.find(each)?.template ?? null,
    tokens: services.config.current().pxe.tokens,
  })

/** The question first; its form posts `confirm=yes`. */
export async function bootOnce(context: CurrentContext, form: URLSearchParams): Promise<Answer> {
  const { site, event, services } = context
  const mac = readMac(event)
  const machine = await site.machines.find(mac)
  if (machine === null) throw refuse(404, `no machine record for ${mac}`)
  const name = form.get('entry') ?? ''
  const entry = services.entries.find(name)
  if (isAsked(form) && entry !== null) {
    return await context.show({
      title: `Boot ${name} once on ${nameOf(machine)}`,
      body: renderOnceQuestion(context, machine, entry),
    })
  }
  const request = { action: 'once', parameters: { entry: name } }
  const acted = await site.fleet.act(mac, request, context.by())
  if (acted.result === 'missing') throw refuse(404, `no machine record for ${mac}`)
  if (acted.result === 'refused')
    return context.goBack(machinePath(mac), { error: acted.reason, anchor: 'once' })
  const powered = bootAfter(context, form) ? { powered: 1 } : {}
  return context.goTo(address(machinePath(mac), { once: 1, ...powered }))
}

/** Said wherever something is ordered, for one or for many. */
export const renderWarning = (): Html =>
  banner(
    'needs-you',
    fillHtml('{strong}An installer may erase every disk of the machine.{end}', STRONG),
  )

function renderOnceQuestion(context: CurrentContext, machine: Machine, entry: NamedEntry): Html {
  const path = `${machinePath(machine.mac)}/do/once`
  return renderQuestion({
    title: html`Boot <bdi>${entry.name}</bdi> once on <bdi>${nameOf(machine)}</bdi>?`,
    body: html`${renderWarning()}
      <p>
        The next network boot starts it. The one after that does what is configured now. The order
        ends unused after ${ORDER_HOURS} hours.
      </p>
      ${
        hasAnswers(entry)
          ? html`<p>
              Its answers can be read by whoever can fetch the boot script of this machine, until
              ${ANSWER_MINUTES} minutes after the first of them was fetched.
            </p>`
          : null
      }`,
    command: renderCurlBlock(context, [
      {
        method: 'POST',
        path: `/machines/${machine.mac}/once`,
        body: { entry: entry.name },
        scope: 'flash',
      },
    ]),
    form: {
      action: path,
      fields: html`${hidden({ entry: entry.name, confirm: 'yes' })}
      ${renderBootField(context, machine)}`,
      cancel: `${machinePath(machine.mac)}#once`,
      button: html`<button class="danger">Boot it once</button>`,
    },
  })
}
