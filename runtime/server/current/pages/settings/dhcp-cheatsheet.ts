/** The DHCP options that make machines boot from this server, and recipes for DHCP servers. */
import {
  FIRMWARE_LOADERS,
  renderDhcpRecipes,
  scriptOf,
  UEFI_FILES,
  type DhcpRecipe,
  type FirmwareLoader,
} from '../../../../fleet/boot/rules/dhcp.ts'
import { decideDhcpTarget } from '../../../../fleet/boot/rules/dhcp-target.ts'
import { listLanAddresses } from '../../../../fleet/boot/host-addresses.ts'
import { card, copyable, copyBlock, factList } from '../../../../kit/web/ui/elements.ts'
import { attributes, html, type Html } from '../../../../kit/web/ui/html.ts'
import type { CurrentContext } from '../view/page-context.ts'
import { PAGES } from '../../../texts/texts.ts'
import { fill } from '../../../../kit/texts/text.ts'

const t = PAGES.settings.dhcp

export async function renderDhcp(context: CurrentContext): Promise<Html> {
  const { baseUrl } = context.contact()
  const said = context.query.get('loader')
  const loader = FIRMWARE_LOADERS.find((one) => one === said) ?? 'grub'
  const files = UEFI_FILES[loader]
  const decided = decideDhcpTarget(baseUrl, listLanAddresses(), loader)
  const hasOthers = (context.site.otherServers?.(baseUrl).length ?? 0) > 0
  const target = decided === null ? null : { ...decided, hasOthers }
  const server = target?.address ?? new URL(baseUrl).hostname
  const base = target?.baseUrl ?? baseUrl
  return card({
    title: t.title,
    id: 'dhcp-pxe',
    body: html`${renderChoice(loader)}${factList([
      [t.server, copyable(server)],
      [t.bios, copyable('undionly.kpxe')],
      [t.uefi, copyable(files.uefi)],
      [t.arm, copyable(files.arm)],
      [t.http, copyable(`${base}/boot/${files.uefi}`)],
      [t.httpArm, copyable(`${base}/boot/${files.arm}`)],
      [t.script, copyable(scriptOf({ baseUrl: base, hasOthers }))],
    ])}${target === null ? null : renderDhcpRecipes(target).map(renderRecipe)}`,
  })
}

const renderChoice = (chosen: FirmwareLoader): Html =>
  html`<nav class="tabs" aria-label="${t.loaders.label}">
    ${FIRMWARE_LOADERS.map(
      (loader) =>
        html`<a
          href="?loader=${loader}#dhcp-pxe"
          ${attributes({ 'aria-current': loader === chosen ? 'true' : null })}
          >${t.loaders[loader]}</a
        >`,
    )}
  </nav>`

const renderRecipe = ({ id, title, where, note, text }: DhcpRecipe): Html =>
  html`<details id="dhcp-${id}">
    <summary>${title}</summary>
    <p class="small dim">${where}<br />${note}</p>
    ${copyBlock(text, fill(t.recipe, { title, place: where }))}
  </details>`
