/** The DHCP options that make machines boot from this server, and recipes for DHCP servers. */
import type { H3Event } from 'h3'
import { renderDhcpRecipes, type DhcpRecipe } from '../../../../core/boot/dhcp.ts'
import { decideDhcpTarget } from '../../../../core/boot/dhcp-target.ts'
import { listLanAddresses } from '../../../../services/host/host-addresses.ts'
import { card, copyable, copyBlock, factList } from '../../../../web/ui/elements.ts'
import { html, type Html } from '../../../../web/ui/html.ts'
import type { PageContext } from '../frame/page-context.ts'
import { PAGES } from '../../../../core/texts/pages/texts.ts'
import { fill } from '../../../../core/texts/text.ts'

const t = PAGES.settings.dhcp

export async function renderDhcp(context: PageContext, event: H3Event): Promise<Html> {
  const { baseUrl } = context.site.contact(event)
  const target = decideDhcpTarget(baseUrl, listLanAddresses())
  const server = target?.address ?? new URL(baseUrl).hostname
  const base = target?.baseUrl ?? baseUrl
  return card({
    title: t.title,
    id: 'dhcp-pxe',
    body: html`${factList([
      [t.server, copyable(server)],
      [t.bios, copyable('undionly.kpxe')],
      [t.uefi, copyable('ipxe.efi')],
      [t.http, copyable(`${base}/boot/ipxe.efi`)],
      [t.script, copyable(`${base}/pxe-bootstrap.ipxe`)],
    ])}${target === null ? null : renderDhcpRecipes(target).map(renderRecipe)}`,
  })
}

const renderRecipe = ({ id, title, where, note, text }: DhcpRecipe): Html =>
  html`<details id="dhcp-${id}">
    <summary>${title}</summary>
    <p class="small dim">${where}<br />${note}</p>
    ${copyBlock(text, fill(t.recipe, { title, place: where }))}
  </details>`
