/** The first-boot template on a machine's page: which one it has, and what that is for this machine. */
import { findCallObstacle } from '#engine/first-boot/rules/proof-call.ts'
import { hasSecrets } from '#engine/first-boot/rules/template.ts'
import type { FirstBoot } from '#engine/first-boot/rules/seed.ts'
import { banner, foldedCard } from '#kit/web/ui/elements.ts'
import { selectField } from '#kit/web/ui/fields.ts'
import { fillHtml, html, type Html } from '#kit/web/ui/html.ts'
import { previewFirstBoot } from './template-routes.ts'
import type { Machine } from '#server/current/machines/rules/machine.ts'
import type { CurrentContext } from '#server/current/view/page-context.ts'
import { renderCurlBlock } from '#server/pages/curl-block.ts'
import { machinePath } from '#server/pages/machines/machines-list.ts'
import { renderFirstBootTexts } from './template-form.ts'

export async function renderFirstBootCard(
  context: CurrentContext,
  machine: Machine,
): Promise<Html> {
  const { templates } = context.services
  const preview = await previewFirstBoot(context.site, templates, machine)
  const { first_boot: name } = machine
  const faults = name === null ? [] : listFaults(context, name, preview)
  const hint = preview?.ok === true ? renderNoCall(context, preview.value) : null
  return foldedCard({
    title: 'First boot',
    id: 'first-boot',
    about: name === null ? 'None' : html`<bdi>${name}</bdi>`,
    isOpen: faults.length > 0 || hint !== null,
    body: html`<form class="row" method="post" action="${machinePath(machine.mac)}/do/first-boot">
        ${selectField({
          name: 'first_boot',
          label: 'Template',
          value: name ?? '',
          options: listOptions(context, name),
          hint: 'Written with each flash. A person in the wizard sees it on the last screen and can leave it out.',
        })}
        <button>Assign</button>
      </form>
      ${renderCurlBlock(context, [
        {
          method: 'POST',
          path: '/machines/bulk',
          body: {
            action: 'first-boot',
            macs: [machine.mac],
            parameters: { first_boot: name },
          },
          scope: 'machines',
        },
      ])}
      ${faults} ${hint} ${preview?.ok === true ? renderTexts(preview.value) : null}
      <p><a href="${TEMPLATES_PATH}">Templates</a></p>`,
  })
}

/** A removed template is listed while the machine has it. */
export function listOptions({ services }: CurrentContext, present: string | null) {
  const names = services.templates.list().map(({ name }) => name)
  const all = present === null || names.includes(present) ? names : [present, ...names]
  return [{ value: '', text: 'None' }, ...all.map((name) => ({ value: name, text: name }))]
}

function listFaults(
  { services }: CurrentContext,
  name: string,
  preview: Awaited<ReturnType<typeof previewFirstBoot>>,
): Html[] {
  if (preview === null)
    return [
      banner(
        'failed',
        `The template ${name} no longer exists. Assign another one, or none: until then the machine is not flashed.`,
      ),
    ]
  const kept = services.templates.find(name)
  const isOpen =
    kept !== null && hasSecrets(kept.template) && services.config.current().pxe.tokens !== 'require'
  const setting = html`<a href="/ui/settings#pxe.tokens">boot tokens are required</a>`
  const template = html`<a href="${templatePath(name)}"><bdi>${name}</bdi></a>`
  return [
    ...(isOpen
      ? [
          banner(
            'needs-you',
            fillHtml('The template has secrets. This machine is not flashed until {setting}.', {
              setting,
            }),
          ),
        ]
      : []),
    ...(preview.ok
      ? []
      : [
          banner(
            'failed',
            fillHtml(
              'The template {template} does not fit: {reason}. Until it does, the machine is not flashed.',
              { reason: preview.refusal, template },
            ),
          ),
        ]),
  ]
}

/** The server waits for first boots, but this template cannot report one. */
function renderNoCall({ services }: CurrentContext, firstBoot: FirstBoot): Html | null {
  if (!services.config.current().proof.enabled) return null
  const reason = findCallObstacle(firstBoot)
  return reason === null
    ? null
    : html`<p class="hint">The new system cannot report that it has booted. ${reason}</p>`
}

const renderTexts = (firstBoot: FirstBoot): Html =>
  html`<details>
    <summary>Preview for this machine</summary>
    ${renderFirstBootTexts(firstBoot)}
  </details>`

export const TEMPLATES_PATH = '/ui/first-boot'

export const templatePath = (name: string): string =>
  `${TEMPLATES_PATH}/${encodeURIComponent(name)}`
