/** The provisioning files of a machine's page: shown, saved and removed. */
import type { Mac } from '#kit/net/rules/mac.ts'
import { readMac } from '#kit/web/answers/checked.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import { seeOther, type Answer } from '#kit/web/answers/answers.ts'
import { badge, card } from '#kit/web/ui/elements.ts'
import { hidden } from '#kit/web/ui/fields.ts'
import { address, html, type Html } from '#kit/web/ui/html.ts'
import { MAX_PROVISION_BYTES, recordProvision } from '../routes/provision.ts'
import type { Machine } from '../rules/machine.ts'
import {
  parseProvisionFile,
  PROVISION_FILES,
  type ProvisionFile,
} from '#fleet/workflow/rules/online-workflow.ts'
import { machinePath } from '#server/pages/machines/machines-list.ts'
import type { EarlierContext } from './machine-view.ts'
import { formAt } from '#server/pages/context-routes.ts'

/** A form may encode a byte as three. */
const MAX_FORM = 3 * MAX_PROVISION_BYTES + 64 * 1024

export const PROVISION_PAGES = [
  formAt('/ui/machines/:mac/provision', 'machines', saveProvision, { most: MAX_FORM }),
]

export async function listKept(
  { services }: EarlierContext,
  mac: Mac,
): Promise<ReadonlySet<ProvisionFile>> {
  const names = await services.files.list(mac)
  return new Set(names.map(parseProvisionFile).filter((name) => name !== null))
}

export async function provisioningCard(
  { services }: EarlierContext,
  { mac }: Machine,
  kept: ReadonlySet<ProvisionFile>,
): Promise<Html> {
  const texts = await Promise.all(
    PROVISION_FILES.map(async (name) => (await services.files.read(mac, name))?.toString() ?? ''),
  )
  return card({
    title: 'Provisioning files',
    id: 'provision',
    body: html`<p class="dim">
        ${"The live system fetches them during the flash, with a token that is valid until the machine reports its end. Only the server's user can read them here."}
      </p>
      ${PROVISION_FILES.map((name, at) => renderFile(mac, name, kept.has(name), texts[at] ?? ''))}`,
  })
}

const renderFile = (mac: string, name: ProvisionFile, isKept: boolean, text: string): Html =>
  html`<details>
    <summary><code>${name}</code> ${isKept ? badge('done', 'present') : null}</summary>
    <form method="post" action="${machinePath(mac)}/provision">
      ${hidden({ name })}
      <div class="field">
        <label for="file-${name}">Content</label>
        <textarea id="file-${name}" name="text" rows="8" class="mono" spellcheck="false">
${text}</textarea>
        <p class="hint">Save it empty to remove the file.</p>
      </div>
      <button>Save ${name}</button>
    </form>
  </details>`

async function saveProvision(context: EarlierContext, form: URLSearchParams): Promise<Answer> {
  const { site, services } = context
  const mac = readMac(context.event)
  const name = parseProvisionFile(form.get('name') ?? '')
  if (site.machines.peek(mac) === null) throw refuse(404, `no machine record for ${mac}`)
  if (name === null) throw refuse(400, 'no such provisioning file')
  // Forms send CR LF, which shells and YAML readers of the image may not take.
  const text = (form.get('text') ?? '').replaceAll('\r\n', '\n')
  const bytes = Buffer.from(text)
  if (bytes.byteLength > MAX_PROVISION_BYTES) {
    return context.goBack(machinePath(mac), { error: `${name} is longer than 1 MiB.` })
  }
  if (text.trim() === '') await services.files.remove(mac, name)
  else await services.files.save(mac, name, bytes)
  await recordProvision(site, context.event, mac, name, text.trim() === '' ? 'removed' : 'saved')
  return seeOther(`${address(machinePath(mac), { saved: 1 })}#provision`)
}
