/** The provisioning files of a machine's page: shown, saved and removed. */
import type { H3Event } from 'h3'
import { readMac } from '../../../web/http/checked.ts'
import { refuse } from '../../../web/http/faults.ts'
import { seeOther } from '../../../web/http/answers.ts'
import { badge, card } from '../../../web/ui/elements.ts'
import { hidden } from '../../../web/ui/fields.ts'
import { address, html, type Html } from '../../../web/ui/html.ts'
import type { Route } from '../../../web/http/route.ts'
import { MAX_PROVISION_BYTES, noteProvision } from '../routes/provision.ts'
import type { Machine } from '../rules/machine.ts'
import { parseProvisionFile, PROVISION_FILES, type ProvisionFile } from '../rules/provisioning.ts'
import { machinePath } from './frame/machine-row.ts'
import { formRoute, goBack, type PageContext } from './frame/page-context.ts'

/** Each byte of a text may become three in a form. */
const MAX_FORM = 3 * MAX_PROVISION_BYTES + 64 * 1024

export const provisionPages = (context: PageContext): readonly Route[] => [
  formRoute('/ui/machines/:mac/provision', (event, form) => save(context, event, form), MAX_FORM),
]

export async function provisioningCard(
  { services }: PageContext,
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
        The live system fetches them during the flash, with a token that is valid until the machine
        reports its end. Only the server's user can read them here.
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

async function save(context: PageContext, event: H3Event, form: URLSearchParams): Promise<unknown> {
  const { site, services } = context
  const mac = readMac(event)
  const name = parseProvisionFile(form.get('name') ?? '')
  if (site.machines.peek(mac) === null) throw refuse(404, `no machine record for ${mac}`)
  if (name === null) throw refuse(400, 'no such provisioning file')
  // Forms send CR LF, which shells and YAML readers of the image may not take.
  const text = (form.get('text') ?? '').replaceAll('\r\n', '\n')
  const bytes = Buffer.from(text)
  if (bytes.byteLength > MAX_PROVISION_BYTES) {
    return goBack(context, event, machinePath(mac), `${name} is longer than 1 MiB.`)
  }
  if (text.trim() === '') await services.files.remove(mac, name)
  else await services.files.save(mac, name, bytes)
  await noteProvision(site, event, mac, name, text.trim() === '' ? 'removed' : 'saved')
  return seeOther(`${address(machinePath(mac), { saved: 1 })}#provision`)
}
