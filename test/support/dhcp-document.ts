/** `docs/dhcp.md`, with its blocks as the server makes them; run as a program, it writes the file. */
import { writeFileSync } from 'node:fs'
import { planDhcp, renderDhcpRecipes, type DhcpRecipe } from '../../runtime/core/boot/dhcp.ts'

export const DHCP_DOCUMENT = 'docs/dhcp.md'

/** The blocks name a server at 192.0.2.10, port 8080. */
export function renderDhcpDocument(): string {
  const target = planDhcp('192.0.2.10', 24, 'http://192.0.2.10:8080')
  if (!target.ok) throw new Error(target.refusal)
  return [HEAD, ...renderDhcpRecipes(target.value).map(renderRecipe), TAIL].join('\n')
}

const HEAD = `# DHCP and network boot

<!-- Made by test/support/dhcp-document.ts; do not edit. -->

\`flasher-web\` gives out no addresses and is no TFTP server. A DHCP server that is there anyway says
where machines find it. The page **Settings, DHCP and network boot** has the blocks below with the
addresses of your server in them; here it is 192.0.2.10, port 8080.

## What happens

1. The firmware asks for an address, and says what it is (option 93).
2. It loads an iPXE: a BIOS \`undionly.kpxe\`, UEFI \`ipxe.efi\`, both by TFTP; or, by UEFI HTTP Boot,
   \`http://192.0.2.10:8080/boot/ipxe.efi\`. HTTP Boot takes an answer only if it carries the vendor
   class \`HTTPClient\` (option 60).
3. iPXE asks again, with the user class \`iPXE\` (option 77), and gets
   \`http://192.0.2.10:8080/pxe-bootstrap.ipxe\`. That leads to the script of its machine.

| Firmware                  | Option 93         | Gets                           |
| ------------------------- | ----------------- | ------------------------------ |
| BIOS                      | 0                 | \`undionly.kpxe\` by TFTP        |
| UEFI x86-64               | 7, 9              | \`ipxe.efi\` by TFTP             |
| UEFI arm64                | 11                | \`ipxe-arm64.efi\` by TFTP       |
| UEFI HTTP Boot x86-64     | 16                | \`/boot/ipxe.efi\` by HTTP       |
| UEFI HTTP Boot arm64      | 19                | \`/boot/ipxe-arm64.efi\` by HTTP |
| iPXE, whatever it runs on | user class \`iPXE\` | \`/pxe-bootstrap.ipxe\` by HTTP  |

Without the last row iPXE gets itself again and again. In every block it comes before, or excludes,
the others.

## The files

\`/boot/ipxe.efi\` is the newest iPXE of a fetched release. The TFTP daemon needs \`ipxe.efi\` (the
same file) and, for machines with a BIOS, \`undionly.kpxe\` (Debian: package \`ipxe\`,
\`/usr/lib/ipxe/undionly.kpxe\`) in its folder. The Netboot page asks the daemon for \`ipxe.efi\` and
says what came of it; \`netboot.tftp_probe_host\` names its host where that is not the server's own.

An iPXE that is not ours, from version 2.0 on, looks for \`autoexec.ipxe\` where it came from itself.
The server has one at \`/boot/autoexec.ipxe\`; for TFTP, save that beside \`ipxe.efi\`:

\`\`\`sh
curl -o /srv/tftp/autoexec.ipxe http://192.0.2.10:8080/boot/autoexec.ipxe
\`\`\`
`

const TAIL = `## When it does not work

- **No offer at all**: DHCP and its answers stay in one network. A relay (\`ip helper-address\`) or a
  proxy in the machine's own network helps.
- **\`PXE-E16\`, or "no boot file name"**: the machine's class is in no row; the log of the DHCP server
  shows its option 93.
- **HTTP Boot says nothing and goes on**: the answer lacks the vendor class \`HTTPClient\`. In Kea a
  reservation of the host replaces what its class says, so it must say both options itself.
- **A proxy beside another DHCP server**: \`dhcp-boot\` does not reach PXE firmware there, which is why
  that block has \`pxe-service\`.
- **iPXE loads iPXE**: the user class does not match; some servers want it with a length byte before.
- **Ports**: UDP 67 and 69, UDP 4011 for a proxy, and TCP 8080 from the machines to the server.
`

const renderRecipe = ({ title, where, note, text }: DhcpRecipe): string =>
  [`## ${title}`, '', note, '', `In: ${where}`, '', '```', `${text}\`\`\``, ''].join('\n')

if (import.meta.main) writeFileSync(DHCP_DOCUMENT, renderDhcpDocument())
