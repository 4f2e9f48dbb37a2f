/** The question before a machine is armed: which image, which disk, and what is unusual. */
import { printable } from '#kit/foundation/printable.ts'
import { fill } from '#kit/texts/text.ts'
import type { Answer } from '#kit/web/answers/answers.ts'
import { banner, icon, renderBytes } from '#kit/web/ui/elements.ts'
import { hidden } from '#kit/web/ui/fields.ts'
import { fillHtml, html, STRONG, type Content, type Html } from '#kit/web/ui/html.ts'
import { findMissing } from '#fleet/workflow/rules/provisioning.ts'
import {
  machinePath,
  MACHINES_PATH,
  MACHINES_TRAIL,
  nameDisk,
} from '#server/pages/machines/machines-list.ts'
import { renderQuestion } from '#server/pages/question.ts'
import { PAGES } from '#server/texts/texts.ts'
import type { Machine } from '../rules/machine.ts'
import type { EarlierContext } from './machine-view.ts'
import { listKept } from './provision.ts'

const t = PAGES.earlier.machine.arming
const { warnings } = PAGES.earlier.machine
const { flashQuestion } = PAGES.machine

/** A dialog, or a page of its own without scripts. `fields` are sent on with the answer. */
export async function askToArm(
  context: EarlierContext,
  machine: Machine,
  fields: Readonly<Record<string, string>>,
): Promise<Answer> {
  const { mac, hostname } = machine
  const name = hostname === null ? mac : `${printable(hostname)} (${mac})`
  return await context.show({
    title: fill(t.title, { machine: name }),
    section: MACHINES_PATH,
    trail: MACHINES_TRAIL,
    body: renderQuestion({
      title: fillHtml(t.question, {
        image: html`<bdi>${printable(machine.image ?? '')}</bdi>`,
        machine: html`<bdi>${name}</bdi>`,
      }),
      body: html`<div class="facing">
          ${await renderImage(context, machine)}
          <span aria-label="${flashQuestion.to}">→</span>
          ${renderDisk(context, machine)}
        </div>
        ${(await listWarnings(context, machine)).map((text) => banner('needs-you', text))}
        <p>${fillHtml(t.consequence, STRONG)}</p>`,
      form: {
        action: machinePath(mac),
        fields: hidden({ ...fields, confirm: 'yes' }),
        cancel: machinePath(mac),
        button: html`<button class="danger">${t.button}</button>`,
      },
    }),
  })
}

const findImage = async ({ services }: EarlierContext, { image }: Machine) =>
  (await services.shelf.list()).find(({ name }) => name === image)

async function renderImage(context: EarlierContext, machine: Machine): Promise<Html> {
  const found = await findImage(context, machine)
  const about: Content =
    found === undefined ? t.absent : html`${found.format}, ${renderBytes(found.size_bytes)}`
  return html`<div>
    ${icon('image')} <strong><bdi>${printable(machine.image ?? '')}</bdi></strong
    ><br />
    <span class="small dim">${about}</span>
  </div>`
}

/** This line assigns no disk: its live system takes the only suitable one. */
function renderDisk({ site }: EarlierContext, { mac }: Machine): Html {
  const last = site.runs
    .list({ mac, limit: 10 })
    .map(({ run }) => run.disk)
    .find((disk) => disk !== null)
  return html`<div>
    ${icon('disk')} <strong>${t.disk}</strong><br />
    <span class="small dim"
      >${last === undefined ? t.diskAbout : fill(t.lastDisk, { disk: nameDisk(last) })}</span
    >
  </div>`
}

/** Problems that the flash would have, not the order. */
async function listWarnings(context: EarlierContext, machine: Machine): Promise<readonly string[]> {
  const { image, provisioning_mode: mode, mac } = machine
  const isThere = (await findImage(context, machine)) !== undefined
  const files = findMissing(mode, await listKept(context, mac))
  return [
    ...(isThere ? [] : [fill(warnings.absent, { image: printable(image ?? '') })]),
    ...(files === null ? [] : [fill(t.files, { mode, files })]),
  ]
}
