/** `docs/dhcp.md`, with its blocks as the server makes them; run as a program, it writes the file. */
import { writeFileSync } from 'node:fs'
import { planDhcp, renderDhcpRecipes, type DhcpRecipe } from '#fleet/boot/rules/dhcp.ts'

export const DHCP_DOCUMENT = 'docs/dhcp.md'

/** The blocks name a server at 192.0.2.10, port 8080. */
export function renderDhcpDocument(): string {
  const target = planDhcp('192.0.2.10', 24, 'http://192.0.2.10:8080', 'grub')
  if (!target.ok) throw new Error(target.refusal)
  const shown = renderDhcpRecipes(target.value).filter(({ id }) => !LONG.includes(id))
  return [HEAD, ...shown.map(renderRecipe), TAIL].join('\n')
}

/** The server's page has these as well. */
const LONG: readonly string[] = ['windows', 'mikrotik']

const HEAD = `# DHCP and network boot

<!-- Made by test/support/dhcp-document.ts; do not edit. -->

\`flasher-web\` assigns no addresses and serves no TFTP. Your DHCP server tells machines where to find it. The page
**DHCP** has these blocks with your server's addresses, and those for Windows Server and MikroTik. Here the server is
192.0.2.10, port 8080.

## What happens

1. The firmware requests an address and names its architecture (option 93).
2. UEFI loads Debian's signed shim and GRUB, with or without Secure Boot ([secure-boot.md](secure-boot.md)). BIOS loads
   iPXE.
3. GRUB and iPXE request what the machine boots from the server. iPXE first requests an address again, with the user
   class \`iPXE\` (option 77).

| Firmware              | Option 93         | Gets                          | Without Secure Boot also |
| --------------------- | ----------------- | ----------------------------- | ------------------------ |
| BIOS                  | 0                 | \`undionly.kpxe\` by TFTP       |                          |
| UEFI x86-64           | 7, 9              | \`shimx64.efi\` by TFTP         | \`ipxe.efi\`               |
| UEFI arm64            | 11                | \`shimaa64.efi\` by TFTP        | \`ipxe-arm64.efi\`         |
| UEFI HTTP Boot x86-64 | 16                | \`/boot/shimx64.efi\` by HTTP   | \`/boot/ipxe.efi\`         |
| UEFI HTTP Boot arm64  | 19                | \`/boot/shimaa64.efi\` by HTTP  | \`/boot/ipxe-arm64.efi\`   |
| iPXE                  | user class \`iPXE\` | \`/pxe-bootstrap.ipxe\` by HTTP |                          |

The last row must come first or exclude the others; otherwise iPXE loads itself again and again.

## The proxy

If you cannot change your DHCP server, this host can answer beside it. The proxy answers PXE and HTTP Boot clients,
assigns no addresses, and serves the files by TFTP. It is off until an administrator turns it on:

- **In a checkout**: \`npx pnpm start --proxy\`. It asks which network, where there are several
  (\`--proxy=192.0.2.0/24\`), and asks \`sudo\` unless you are root. It needs the packages \`dnsmasq-base\` and
  \`iproute2\`, and ends with the server.
- **Debian packages, appliances**: _Turn on_ on the page **DHCP**, or in a file:

  \`\`\`toml
  [dhcp]
  proxy = ["192.0.2.0/24"]
  \`\`\`

- **npm**: as root, with \`proxy\` in the state folder of the server:
  \`flasher-web-proxy run --wish /var/lib/flasher/proxy --folder /run/flasher-proxy\`

The page shows each machine that asks, what it was told and fetched, and why one is stuck. A dnsmasq or DHCP server of
this host is neither changed nor restarted. If one has UDP port 67 or 4011 of that network, the proxy does not start and
says so; \`ss -lunp\` as root names the program. Firewalls must let UDP 67, 69 and 4011 and the server's HTTP port in. The
log is \`log\` in its folder below \`/run\`.

UEFI machines get iPXE by PXE, which Secure Boot refuses, and the signed chain by HTTP Boot. With Secure Boot, use HTTP
Boot: GRUB reads its server from the DHCP server's own answer, so by PXE it does not find this one.

Some firmware ignores proxies when the DHCP server names a boot file itself; the page names that server. In one network,
only proxies of servers that [belong together](#several-servers) may answer.

## The files

HTTP Boot needs only a live system on the server. A TFTP daemon needs these files under these names:

\`\`\`sh
mkdir -p /srv/tftp/grub && cd /srv/tftp
curl -fO http://192.0.2.10:8080/boot/shimx64.efi -fO http://192.0.2.10:8080/boot/grubx64.efi
curl -fo grub/grub.cfg http://192.0.2.10:8080/grub/grub.cfg
\`\`\`

Add \`shimaa64.efi\` and \`grubaa64.efi\` for arm64, \`undionly.kpxe\` (Debian package \`ipxe\`) for BIOS, and \`ipxe.efi\` for
iPXE on UEFI. _Network boot_ and the dashboard test the daemon; set \`netboot.tftp_probe_host\` if it runs on another
host.

An iPXE from elsewhere (2.0 or later) loads \`autoexec.ipxe\` from where it came from:

\`\`\`sh
curl -o /srv/tftp/autoexec.ipxe http://192.0.2.10:8080/boot/autoexec.ipxe
\`\`\`

## Several servers

Give each server of \`[pxe] servers\` ([pxe.md](pxe.md#several-servers)) a TFTP daemon with the files above and
\`autoexec.ipxe\`. Fetch \`autoexec.ipxe\` and \`grub/grub.cfg\` from the server beside it, and again when the list changes.

iPXE then gets \`autoexec.ipxe\` in place of \`/pxe-bootstrap.ipxe\`. With dnsmasq:

\`\`\`
dhcp-boot=tag:ipxe,autoexec.ipxe,,192.0.2.10
\`\`\`

A DHCP answer names one TFTP server, and firmware looks for no other. To survive the loss of a whole host, use a
[proxy](#dnsmasq-beside-another-dhcp-server) on each server, or two DHCP servers that each name the server beside them. A
name with both addresses doesn't work: offer and confirmation may name different servers.
`

const TAIL = `## When it does not work

- **No offer**: DHCP stays within one network. Use a relay (\`ip helper-address\`), or a proxy in the machine's network.
- **\`PXE-E16\`, or "no boot file name"**: no row matches. The DHCP server's log shows option 93.
- **HTTP Boot continues without a message**: the answer lacks the vendor class \`HTTPClient\` (option 60). In Kea, a host
  reservation replaces the options of its class, so it needs both options itself.
- **iPXE loads iPXE**: the user class does not match. Some servers require a length byte before it.
- **Ports**: UDP 67 and 69, UDP 4011 for a proxy, and TCP 8080 from the machines to the server.
`

const renderRecipe = ({ title, where, note, text }: DhcpRecipe): string =>
  [`## ${title}`, '', note, '', `In: ${where}`, '', '```', `${text}\`\`\``, ''].join('\n')

if (import.meta.main) writeFileSync(DHCP_DOCUMENT, renderDhcpDocument())
