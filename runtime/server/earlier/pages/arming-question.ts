/** The question before a machine is armed: which image, which disk, and what is unusual. */
import { printable } from '#kit/foundation/printable.ts'
import type { Answer } from '#kit/web/answers/answers.ts'
import { banner, icon, renderBytes } from '#kit/web/ui/elements.ts'
import { hidden } from '#kit/web/ui/fields.ts'
import { fillHtml, html, STRONG, type Content, type Html } from '#kit/web/ui/html.ts'
import { findMissing } from '#fleet/workflow/rules/online-workflow.ts'
import { machinePath, MACHINES_TRAIL, nameDisk } from '#server/pages/machines/machines-list.ts'
import { renderQuestion } from '#server/pages/question.ts'
import type { Machine } from '../rules/machine.ts'
import { viewOf, type EarlierContext } from './machine-view.ts'
import { listKept } from './provision.ts'

/** A dialog, or a page of its own without scripts. `fields` are sent on with the answer. */
export async function askToArm(
  context: EarlierContext,
  machine: Machine,
  fields: Readonly<Record<string, string>>,
): Promise<Answer> {
  const { mac, hostname } = machine
  const name = hostname === null ? mac : `${printable(hostname)} (${mac})`
  return await context.show({
    title: `Flash ${name} at every network boot?`,
    trail: MACHINES_TRAIL,
    body: renderQuestion({
      title: fillHtml('Flash {image} on {machine} at every network boot?', {
        image: html`<bdi>${printable(machine.image ?? '')}</bdi>`,
        machine: html`<bdi>${name}</bdi>`,
      }),
      body: html`<div class="facing">
          ${await renderImage(context, machine)}
          <span aria-label="to">→</span>
          ${renderDisk(context, machine)}
        </div>
        ${(await listWarnings(context, machine)).map((text) => banner('needs-you', text))}
        <p>
          ${fillHtml('Its only suitable disk is erased at every network boot, beginning with the next one, until you change the policy. {strong}Everything on it will be lost.{end}', STRONG)}
        </p>`,
      form: {
        action: machinePath(mac),
        fields: hidden({ ...fields, confirm: 'yes' }),
        cancel: machinePath(mac),
        button: html`<button class="danger">Erase and flash at every network boot</button>`,
      },
    }),
  })
}

const findImage = async ({ services }: EarlierContext, { image }: Machine) =>
  (await services.shelf.list()).find(({ name }) => name === image)

async function renderImage(context: EarlierContext, machine: Machine): Promise<Html> {
  const found = await findImage(context, machine)
  const about: Content =
    found === undefined
      ? 'not in the image folder'
      : html`${found.format}, ${renderBytes(found.size_bytes)}`
  return html`<div>
    ${icon('image')} <strong><bdi>${printable(machine.image ?? '')}</bdi></strong
    ><br />
    <span class="small dim">${about}</span>
  </div>`
}

/** This line assigns no disk: its live system takes the only suitable one. */
function renderDisk(context: EarlierContext, machine: Machine): Html {
  const { disk } = viewOf(context, machine)
  return html`<div>
    ${icon('disk')} <strong>Its only suitable disk</strong><br />
    <span class="small dim"
      >${disk === null ? 'A machine with several suitable disks asks instead.' : `Last time this was ${nameDisk(disk)}.`}</span
    >
  </div>`
}

/** Problems that the flash would have, not the order. */
async function listWarnings(context: EarlierContext, machine: Machine): Promise<readonly string[]> {
  const { image, provisioning_mode: mode, mac } = machine
  const isThere = (await findImage(context, machine)) !== undefined
  const files = findMissing(mode, await listKept(context, mac))
  return [
    ...(isThere
      ? []
      : [`${printable(image ?? '')} is not in the image folder, so the flash cannot start.`]),
    ...(files === null ? [] : [`Add ${files} before it boots: ${mode} needs it.`]),
  ]
}
