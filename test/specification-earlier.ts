/** Earlier line: which test fails when a row of the specification is broken, by the specification's sections. */
import { decided, rowsOf, type SpecificationRow } from '#test/support/specification-rows.ts'

const WIRE = 'server/earlier/rows.test.ts'
const CLI = 'flasher/cli.test.ts'
const BOTH = 'server/shared-rows.test.ts'
const FIELDS = 'server/shared-rows.test.ts'
const SHARED_PAGES = 'bin/shared-pages.test.ts'
const RULES = 'server/earlier/rules/machine.test.ts'
const SCRIPTS = 'server/earlier/rules/boot.test.ts'
const WORKFLOWS = 'server/earlier/rows.test.ts'
const WORKFLOW_RULES = 'server/earlier/rules/workflow.test.ts'
const PAGES = 'server/earlier/pages/pages.test.ts'
const IMAGES = 'server/earlier/routes/images.test.ts'
const FETCH = 'server/earlier/routes/images.test.ts'
const SETTINGS = 'server/earlier/rules/settings.test.ts'
const PROCESS = 'bin/flasher-web-earlier.test.ts'
const PASSWORD = 'bin/people.test.ts'
const PXE = 'bin/activate-pxe.test.ts'
const PXE_HELPER = 'bin/activate-pxe.test.ts'
const RELEASE = 'build/release/folder.test.ts'
const FLASH = 'loop/flash-command.test.ts'
const FLASH_RULES = 'engine/flash/rules/flash-plan.test.ts'
const EXIT_RULES = 'flasher/commands/rules/requests.test.ts'
const PROGRAM = 'bin/flasher.test.ts'
const FORMATS = 'loop/formats.test.ts'
const SEEDS = 'loop/provisioning/provisioning.test.ts'
const FLOWS = 'loop/provisioning/provisioning.test.ts'
const BEFORE_ENDS = 'loop/provisioning/provisioning.test.ts'
const PANES = 'loop/tui/tui-flash.test.ts'
const PANES_FLOW = 'flasher/panes/flow.test.ts'
const PROGRESS = 'flasher/text/progress.test.ts'
const LIVE = 'loop/live/order.test.ts'
const ORDER = 'flasher/order/rules/kernel-order.test.ts'
const LIBRARY = 'loop/library.test.ts'
const PACKAGE = 'loop/package.test.ts'

const RECORD =
  'a record from its first contact to its end: what each trigger sets, and nothing else'
const ENUMS = 'each mode and policy of the tables is taken, any other is 422'
const BY_POLICY = 'GET /pxe/{mac} as the policy says, by HTTP from the address that was asked'
const DONE = 'POST /pxe/{mac}/done: last_flashed_at is set; nothing is made of an unknown machine'
const CRUD = 'PUT, GET and DELETE /machines/{mac}'
const STREAM = 'GET /events/machines: the table on connect, and after every change'
const STREAM_ROWS = '/events/machines: the rows of the table on connect, and after each form post'
const OPEN = '"Open routes": no session is asked for'
const CLOSED = 'protected routes: 401 as JSON, pages lead to the login'
const SPECIFIED = 'the specified names, described and summed'
const VARIABLES = 'it listens where the variables say, and keeps its state there'
const DEFAULTS =
  'without a variable: 0.0.0.0, 8080, /var/lib/flasher with its images and boot files'
const LISTED =
  'list images: the recognised formats directly in the root, which the flag, the variable or the default names'
const INSPECTED =
  'inspect image: path, format and size_bytes always; a detail for qcow2 and zst, none for img'
const MISUSE = 'flash: without an image or a target, and with a progress or a mode of no table, 2'
const ARGUMENTS = 'flash: what is wrong with the arguments is 2, in the order of the checks'
const REFUSED = 'flash: a refused plan is 1, dry or not, root or not'
const RACED = 'mounted between the check and the first byte: 5, nothing written'
const WRITTEN = '--yes: writes, verifies, says exactly which disk is lost, and exits 0'
const DRY_WINS = '--dry-run wins over --yes: nothing is written, 0'
const NO_ROOT = 'without root: 3, after the plan was found good'
const NO_TOOL = 'a missing tool is 4: cijoe, where it is not installed'
const EVENTS = 'events as the deployed clients spell them'
const MODES =
  '--progress: [failed] on stderr by default, an object on stdout with ndjson, nothing with none'
const CIJOE = 'gets the largest volume, the arguments in order, and a configuration'
const SEEDED = 'goes into the partition that has it, with meta-data made up anew each time'
const STREAMED = 'an image of a server is streamed to the disk, and the server is notified'
const ALWAYS_DONE = 'every done starts the workflow of cijoe-online, whichever order it ends'
const BOOT_PAGE =
  '/ui/boot: of each file whether it is there, its size and its time; a form with latest'

const LOCAL = 'a whole flash from the image folder: what is lost is named, then the disk is ready'
const RUN =
  'done starts it; its end is in the record, the events, the output folder and on the page'
const ENVELOPE =
  'every leaf command takes --json: an object with schema_version "1" and its command'
const CATALOG =
  'the catalog has the fields of the table, sorted by name, and only what can be served'
const OF_USER =
  'it is the one of the user who runs the server; any other is refused, and slowed down'

// prettier-ignore
const SERVICE: readonly SpecificationRow[] = [
  ...rowsOf('What the service does', [
    ['1 flasher: list disks and images, inspect, flash, provisioning', EXIT_RULES, '"Command line": the commands, each with --json, and the flags of flash'],
    ['2 flasher-tui: picks an image and a disk and flashes', PANES, LOCAL],
    ['3 flasher-web: registry, scripts, discovery, catalog, artifacts, UI, events', 'server/browser/earlier.test.ts', 'log in, upload an image, set the policy flash, see the script'],
    ['4 releases/latest/download/<filename>; latest can be a tag', FETCH, 'a release is fetched with tag "'],
    ['4 answers 302 to the newest tag', 'server/earlier/routes/images.test.ts', 'signed, '],
    ['4 JSON API GET /repos/<owner>/<name>/releases/latest', 'fleet/boot/releases.test.ts', 'is found and installed: '],
    ['flasher-usb-x86_64.img.zst (+ .sha256) | flasher-server-x86_64.img.zst (+ .sha256) | flasher-server-<arm64 board>.img.zst (+ .sha256) | flasher-live-x86_64.{vmlinuz,initrd,squashfs} (+ .sha256) | flasher_lab-X.Y.Z.tar.gz', RELEASE, SPECIFIED],
    ['documentation PDF', RELEASE, 'what was not built is named, and what nobody has to build is not'],
    ['bootable USB live image', 'vm/earlier-usb.test.ts', 'an image from the stick onto an NVMe disk, in the terminal UI'],
    ['server appliance image, x86_64', 'vm/server/server-appliance.test.ts', 'a seed chooses the earlier line and its password, under Secure Boot'],
    ['server appliance image for arm64 single-board computers', 'vm/server/server-appliance-arm64.test.ts', 'U-Boot starts GRUB from the card of a Raspberry Pi, which gives up a version after its attempts'],
    ['netboot trio for PXE-flash clients', 'vm/earlier.test.ts', 'policy flash with cloud-init: flashed, seeded, recorded, and up'],
    ['trio placed in FLASHER_BOOT_DIR', 'server/earlier/rows.test.ts', BOOT_PAGE],
    ['trio fetched from /ui/boot', FETCH, 'a release is fetched with tag "'],
  ]),
  ...decided('What the service does', [
    ['flasher_lab-X.Y.Z-py3-none-any.whl', 'docs/decisions/0009-rows-that-we-leave.md'],
  ]),
]

// prettier-ignore
const RESOURCES: readonly SpecificationRow[] = [
  ...rowsOf('Resources and their fields', [['Timestamps are ISO 8601 strings', FIELDS, '"Timestamps are ISO 8601 strings", or null where nothing has happened']]),
  ...rowsOf('Machine (server responses)', [
    ['mac: lower-case; input in any case with : or -', FIELDS, '"mac": any case, with : or -, is one machine, shown in lower case with colons'],
    ['image null: discovered but unassigned | hostname string or null | cijoe_workflow_ref string or null | discovered_at first /pxe contact | last_seen_at most recent /pxe contact | last_seen_ip | boot_policy | last_flashed_at set by done | created_at, updated_at', WIRE, RECORD],
    ['discovered_at null if created by PUT only', WIRE, 'a record made by PUT alone was never discovered, seen or flashed'],
    ['provisioning_mode: none, cloud-init, cijoe, cijoe-online | boot_policy: local, flash, tui', WIRE, ENUMS],
    ['last_known_good object or null', WORKFLOW_RULES, 'success leaves what was good: image, provisioning, workflow, time; failure leaves the one before'],
    ['last_workflow_run_at', WORKFLOW_RULES, 'done begins a run where the mode is cijoe-online and a workflow is set'],
    ['last_workflow_status running, success, failed or null', WORKFLOW_RULES, 'begins with done; an end counts only while it runs'],
    ['last_workflow_output_path /var/lib/flasher/workflows/<...>/', WORKFLOWS, RUN],
    ['last_workflow_output_path below /var/lib/flasher', SETTINGS, DEFAULTS],
  ]),
  ...rowsOf('MachineUpsert', [
    ['image | provisioning_mode | hostname | cijoe_workflow_ref | boot_policy default local on PUT', WIRE, RECORD],
    ['auto-discovery sets tui', WIRE, RECORD],
  ]),
  ...rowsOf('ImageEntry', [['name | path, absolute under the image root | format | size_bytes', WIRE, 'GET /images: each recognised format, by its name']]),
  ...rowsOf('Image info (CLI)', [
    ['path, format, size_bytes always | detail for .qcow2 | detail for .img.zst | for .img nothing extra', CLI, INSPECTED],
    ['detail only when the tool succeeds', 'engine/image/images.test.ts', 'a tool that is missing or fails leaves its detail out, and nothing else'],
    ["the image tool's JSON info, the zstd listing", 'engine/image/images.test.ts', 'inspects every format'],
  ]),
  ...rowsOf('Disk record', [
    ['path, size, tran, vendor, model, serial', CLI, 'list disks: each record has the fields of the table'],
    ['removable boolean', 'engine/disk/rules/lsblk.test.ts', 'a row has the ten keys of the document, in their order, then its bytes and its users'],
  ]),
  ...rowsOf('Recognised image formats', [['.qcow2, .img, .img.zst', CLI, LISTED]]),
]

// prettier-ignore
const STATES: readonly SpecificationRow[] = [
  ...rowsOf('boot_policy and the script returned by GET /pxe/{mac}', [
    ['local, or no image assigned: boot-from-local-disk script | flash with an image: the live environment over HTTP | flasher.server, flasher.mac, flasher.image_url, flasher.provisioning | tui', WIRE, BY_POLICY],
    ['flasher.provisioning of each mode', SCRIPTS, 'provisioning as the client gets it: cijoe-online is none there'],
    ['auto-discovery still applies to unknown MACs', BOTH, 'GET /pxe/{mac}: an unknown machine is recorded, and seen again'],
  ]),
  ...rowsOf('Transitions', [
    ['unknown MAC, first contact: image null; discovered_at, last_seen_at, last_seen_ip set | unknown MAC: boot_policy local or tui (in conflict) | known MAC, repeat contact: last_seen_at, last_seen_ip | PUT: fields replaced | DELETE: removed, 204 | done: boot_policy unchanged, last_flashed_at set', WIRE, RECORD],
    ['machines-update event on discovery, PUT and DELETE', BOTH, STREAM],
    ['constant reflashing survives reboots', RULES, 'done sets last_flashed_at and leaves the policy; failed sets neither'],
    ['cijoe-online with a workflow: done sets running', WORKFLOW_RULES, 'done begins a run where the mode is cijoe-online and a workflow is set'],
    ['done starts it without any other condition', 'server/earlier/rules/machine.test.ts', ALWAYS_DONE],
    ['a background run from the server against the booted target', WORKFLOWS, RUN],
    ['status in the record and on the SSE channel', WORKFLOWS, 'the live channel shows each status'],
    ['running to success or failed (not shown)', WORKFLOWS, 'what a workflow ends with decides: another code is a failure, with the reason'],
  ]),
  ...rowsOf('Flash command lifecycle', [
    ['validation, write, sync, partition-table re-read, done', FLASH, WRITTEN],
    ['re-probe of the target immediately before writing', FLASH, RACED],
    ['optional provisioning', BEFORE_ENDS, 'the seed is written '],
    ['any failure ends in failed', FLASH, 'a wrong digest, named or beside the image: 1, failed, and the disk does not boot'],
  ]),
]

// prettier-ignore
const COMMANDS: readonly SpecificationRow[] = [
  ...rowsOf('Command line', [
    ['every leaf command accepts --json', CLI, ENVELOPE],
    ['flasher --version prints the version and exits', PROGRAM, '--version prints the version of package.json'],
    ['list disks: by the JSON of the block-device listing', 'engine/disk/disks.test.ts', 'lists the disks of a machine'],
    ['list disks: columns path, size, tran, vendor, model, serial, removable', 'flasher/commands/rules/list-tables.test.ts', "the specification's columns in their order, then what uses the disk"],
    ['list images: supported images, non-recursive | list images: --image-root, FLASHER_IMAGE_ROOT, /var/lib/flasher/images', CLI, LISTED],
    ['inspect image: info, 0 | inspect image: 2 for a missing path or rejected arguments', CLI, INSPECTED],
    ['flash --image, --target and its other flags', EXIT_RULES, '"Command line": the commands, each with --json, and the flags of flash'],
    ['flash: --image and --target are required', CLI, MISUSE],
    ['flash --progress {text,ndjson,none}', CLI, MODES],
    ['flasher-tui [--server URL] [--mac MAC]', 'loop/tui/tui-screen.test.ts', 'wrong arguments, or no terminal: refused in one line'],
  ]),
  ...rowsOf('flash flags', [
    ['--dry-run: 0 if valid', 'loop/flash-command.test.ts', 'a table for other sectors is found before anything is written'],
    ['--dry-run: 1 if not', PROGRAM, REFUSED],
    ['--dry-run --yes: --dry-run wins, no writes', FLASH, DRY_WINS],
    ['--yes: validate, then write', FLASH, WRITTEN],
    ['--yes requires root', FLASH, NO_ROOT],
    ['neither: 2 and a hint naming both flags', CLI, 'flash: neither --dry-run nor --yes: a hint that names both'],
    ['--provision MODE: none, cloud-init, cijoe', PROGRAM, ARGUMENTS],
  ]),
  ...rowsOf('Validation (both modes)', [
    ['1 the image exists', PROGRAM, ARGUMENTS],
    ['1 a recognised format', CLI, 'flash: an image without a recognised format is a refused plan, 1'],
    ['2 the virtual size fits the target', FLASH, 'mounted and too small: both are said, 1'],
    ['2 decompressed or qcow2 virtual size, not on-disk size', 'engine/image/images.test.ts', 'inspects every format'],
    ['2 skipped with a note when it cannot be determined', FLASH_RULES, 'notes say what could not be known'],
    ['2 to the byte | 3 the target exists | 5 in the order of the list', FLASH_RULES, 'validation: '],
    ['3 a block device', PROGRAM, REFUSED],
    ['4 no mounted partitions', FLASH, 'mounted and too small: both are said, 1'],
    ['5 the mode is none, cloud-init or cijoe', PROGRAM, ARGUMENTS],
  ]),
  ...rowsOf('Write (--yes, root)', [
    ['.img: raw copy | .img.zst: decompressed onto the target | .qcow2: converted to raw onto the target', FORMATS, 'from a file, a server, standard input'],
    ['.img: block size 4M', 'loop/faults.test.ts', 'a write error names the disk and the place, and leaves it blank'],
    ['fsync at end', 'loop/faults.test.ts', 'a flush that fails is a failure: at the start, behind the body, at the end'],
    ['progress on', FLASH, 'on a terminal: a bar between the event lines, none in a log'],
    ['re-probed and re-validated immediately before writing', FLASH_RULES, 'race: '],
    ['after success: sync', FLASH, WRITTEN],
    ['re-read of the partition table', FLASH, "afterwards the kernel knows the image's partitions"],
  ]),
  ...decided('Write (--yes, root)', [
    ['.qcow2: by the image tool', 'docs/decisions/0009-rows-that-we-leave.md'],
  ]),
  ...rowsOf('Provisioning', [
    ['none: no post-flash work', FLASH, WRITTEN],
    ['cloud-init: the partition with /etc/cloud/ | cloud-init: user-data, and the supplied or a synthesised meta-data', SEEDS, SEEDED],
    ['cloud-init: /var/lib/cloud/seed/nocloud-net/', 'engine/flash/rules/provisioning.test.ts', 'finds the volume that will be under the seed'],
    ['cloud-init requires --user-data PATH, otherwise 2 | cijoe requires --cijoe-workflow PATH, otherwise 2', PROGRAM, ARGUMENTS],
    ['cloud-init: no partition carries it: an error, no unread seed', BEFORE_ENDS, 'an image without cloud-init '],
    ['cijoe: mounts the largest partition, FLASHER_ROOTFS | cijoe --monitor [-c <config>] <workflow>', FLOWS, CIJOE],
    ['cijoe: config from --cijoe-config', FLOWS, 'gets the root subvolume of btrfs, and the configuration that was given'],
    ['cijoe requires cijoe on the search path, otherwise 4', PROGRAM, NO_TOOL],
    ['cijoe: a non-zero exit is a flash failure', BEFORE_ENDS, 'a workflow that fails leaves the disk without its ends'],
  ]),
  ...decided('Provisioning', [
    ['cloud-init: written after the flash', 'docs/decisions/0009-rows-that-we-leave.md'],
  ]),
  ...rowsOf('JSON envelope', [
    ['schema_version string 1, command string', CLI, ENVELOPE],
    ['command-specific fields', EXIT_RULES, '"JSON envelope": schema_version, command, then the rest, indented by two'],
  ]),
  ...rowsOf('flasher-tui', [
    ['local mode: scans the image root', PANES, LOCAL],
    ['--server: GET /images; GET /images/{name} straight to the disk | --server: the pane title shows the server URL | --mac: posts /pxe/<mac>/done after a success', PANES, STREAMED],
    ['--server: no local download, in the order of the bytes', PANES, 'a server that knows no HEAD is flashed from as well'],
    ['--mac is used with --server, and only after a success', PANES_FLOW, 'a failure notifies nobody, nor does a success without a server or a MAC address'],
    ['--mac: a failure shows in the status bar, does not undo the flash', PANES, 'a done signal that is refused stays in the status bar, and is sent again with d'],
    ['the live env reads flasher.server and flasher.mac', ORDER, 'interactive: the panes, with server and MAC address, whatever else there is'],
    ['and builds the matching invocation', LIVE, 'tui: each console has the panes, with the machine that they report for'],
    ['from /proc/cmdline', 'vm/earlier.test.ts', 'policy flash with cloud-init: flashed, seeded, recorded, and up'],
  ]),
]

// prettier-ignore
const ROUTES: readonly SpecificationRow[] = [
  ...rowsOf('Open routes (no session)', [
    ['GET /healthz: status ok | GET /version: version', BOTH, 'GET /healthz and GET /version'],
    ['GET /pxe/{mac}: text/plain', WIRE, BY_POLICY],
    ['GET /pxe/{mac} may create or touch a record', BOTH, 'GET /pxe/{mac}: an unknown machine is recorded, and seen again'],
    ['POST /pxe/{mac}/done', BOTH, DONE],
    ['GET /pxe-bootstrap.ipxe: one chain command, the Host header', BOTH, 'GET /pxe-bootstrap.ipxe: one chain command, to the host that was asked'],
    ['GET /boot/{name}', BOTH, 'GET /boot/{name}: open, in parts, and never outside its folder'],
    ['GET /images/{name}', IMAGES, 'an image is answered whole, in part, by its headers alone, or not at all'],
    ['GET /images', IMAGES, CATALOG],
    ['/boot/{name} from FLASHER_BOOT_DIR, /images/{name} from FLASHER_IMAGE_ROOT', PROCESS, VARIABLES],
  ]),
  ...rowsOf('Protected routes', [
    ['GET /machines | GET /machines/{mac}; 404 | PUT: the new state | DELETE: 204; 404', BOTH, CRUD],
    ['session required: /machines, /machines/{mac}, PUT /boot/{name}, /events/machines', BOTH, CLOSED],
    ['PUT /boot/{name} | PUT /boot/{name}: session required', IMAGES, 'boot files: open to read, a session to write'],
    ['PUT /images/{name} | PUT /images/{name}: session required', IMAGES, 'an upload needs a session, is renamed into place, and is listed at once'],
    ['GET /events/machines', BOTH, STREAM],
    ['GET /static/ from the same origin', SHARED_PAGES, 'the way in: /ui, the login form, every page behind it'],
    ['no external network address is contacted', FIELDS, '"no external network address is contacted": pages load from this server alone'],
  ]),
  ...rowsOf('Browser UI routes', [
    ['GET /ui: 303 to /ui/dashboard | GET /ui/login: form', SHARED_PAGES, 'the way in: /ui, the login form, every page behind it'],
    ['POST /ui/login', BOTH, 'the session: its cookie, a wrong password, the end of it'],
    ['POST /ui/logout clears the session', SHARED_PAGES, 'POST /ui/logout: the cookie is taken back, and opens nothing any more'],
    ['GET /ui/dashboard: machines, discovered, images', PAGES, 'GET /ui/dashboard counts machines, discovered ones and images'],
    ['GET /ui/machines: a discovered badge', PAGES, 'GET /ui/machines: a badge for machines without an image, and the policy of each'],
    ['GET /ui/machines: updates via SSE', 'server/browser/earlier.test.ts', 'log in, upload an image, set the policy flash, see the script'],
    ['GET /ui/machines/{mac}: detail and edit form', WIRE, '/ui/machines/{mac}: what is known, and a form with each field of MachineUpsert'],
    ['POST /ui/machines/{mac}: upsert', PAGES, 'POST /ui/machines/{mac} saves, creates, and says what is wrong'],
    ['POST /ui/machines/{mac}/delete', 'server/earlier/pages/pages.test.ts', 'POST /ui/machines/{mac}/delete'],
    ['GET /ui/images: the catalog', WIRE, '/ui/images: the catalog, by name, format and size'],
    ['GET /ui/boot: present or missing', FETCH, 'the page lists each file as present or missing'],
    ['GET /ui/boot: sizes, last-fetched timestamps | GET /ui/boot: fetch-latest-release form', WIRE, BOOT_PAGE],
    ['fetch-release: vmlinuz, initrd, squashfs, sha256 | fetch-release: <site>/releases/<tag>/download/ | fetch-release: of FLASHER_BOOT_RELEASE_REPO | fetch-release: default tag latest', FETCH, 'a release is fetched with tag "'],
    ['fetch-release: verifies the manifest, installs atomically', FETCH, 'the page says so, and nothing was changed'],
    ['GET /ui/settings: Authentication, words only; PXE proxy-DHCP', WIRE, '/ui/settings: Authentication is words alone, beside PXE proxy-DHCP'],
    ['GET /ui/settings: interfaces of the system, a subnet | pxe-activate runs flasher-web-activate-pxe by sudo', PXE, 'the page activates and deactivates, by sudo and within the sandbox'],
    ['subnet a.b.c.d/nn | pxe-activate writes /etc/dnsmasq.d/flasher-pxe-active.conf and restarts the daemon', PXE_HELPER, 'a machine is offered this server and its file, and nothing once it is deactivated'],
    ['subnet a.b.c.d', PXE_HELPER, 'what dnsmasq refuses is put back as it was, before and after the restart'],
    ['/usr/local/sbin/flasher-web-activate-pxe', PXE, 'the page activates and deactivates, by sudo and within the sandbox'],
    ['/etc/sudoers.d/flasher-web: a single passwordless entry', PXE, 'sudo takes the documented line'],
    ['every page and post needs a session', WIRE, 'the posts of pages change nothing without a session'],
  ]),
  ...decided('Browser UI routes', [
    ['GET /ui/images: read-only', 'docs/decisions/0009-rows-that-we-leave.md'],
  ]),
]

// prettier-ignore
const ACCESS: readonly SpecificationRow[] = [
  ...rowsOf('Authentication', [
    ['1 the service user and its operating-system password', PASSWORD, OF_USER],
    ['1 the only credential', PASSWORD, 'a password in the configuration is none of this line'],
    ['2 form-encoded password, redirects, emits the cookie', BOTH, 'the session: its cookie, a wrong password, the end of it'],
    ["2 checked against the system account's password", PASSWORD, OF_USER],
    ['2 sets session flag bty_authed | 3 sliding 7-day lifetime | 3 the value is the session itself', FIELDS, 'the session: a flag in a signed cookie that slides for 7 days'],
    ['3 name flasher-token | 3 SameSite=Strict', BOTH, 'the session: its cookie, a wrong password, the end of it'],
    ['3 signed', 'kit/web/access/login.test.ts', 'a cookie that is not ours, or not any more, opens nothing'],
    ['3 key at /var/lib/flasher/session-secret', SETTINGS, DEFAULTS],
    ['3 key generated on first boot | 6 delete the key file and restart', PROCESS, 'deleting the key file and restarting ends all sessions; an empty one is refused'],
    ['4 logout: a deletion cookie', SHARED_PAGES, 'POST /ui/logout: the cookie is taken back, and opens nothing any more'],
    ['5 protected routes check the session flag', BOTH, CLOSED],
    ['5 no per-request database lookup', 'kit/web/access/session.test.ts', 'a login in the second of a new password counts'],
    ['7 open: /healthz, /version, /pxe/{mac}, done, /pxe-bootstrap.ipxe, /boot/{name}', FIELDS, OPEN],
    ['7 open: GET /images', IMAGES, CATALOG],
    ['7 open: GET /images/{name}', IMAGES, 'an image is answered whole, in part, by its headers alone, or not at all'],
    ['7 anyone reachable can write discovery rows', BOTH, 'GET /pxe/{mac}: an unknown machine is recorded, and seen again'],
    ['7 uploads are authentication-gated', WIRE, 'the posts of pages change nothing without a session'],
    ['8 GET /events/machines uses the session cookie', BOTH, CLOSED],
    ['9 a wrong password (not shown: 401)', PASSWORD, OF_USER],
    ['10 without a session (not shown: 401 or the login)', BOTH, CLOSED],
  ]),
  ...rowsOf('Machines channel', [
    ['1 text/event-stream | 2 on connect machines-update | 3 after PUT, DELETE and discovery', BOTH, STREAM],
    ['2 the current table-body markup | 3 after the matching /ui form posts', WIRE, STREAM_ROWS],
    ['4 slow consumers recover on the next event', FIELDS, 'a consumer that does not read holds up nobody, and recovers'],
    ['5 exactly one server worker process', PROCESS, VARIABLES],
    ['6 workflow status changes', WORKFLOWS, 'the live channel shows each status'],
  ]),
  ...rowsOf('Flash lifecycle events', [
    ['started, writing, synced, partprobed, done', FLASH, WRITTEN],
    ['provisioning (cloud-init) | in the order of the list', BEFORE_ENDS, 'the seed is written '],
    ['provisioning (cijoe)', PROGRESS, 'text in a log: event lines, and now and then how far it is'],
    ['failed', CLI, MODES],
    ['text: one line per event on stderr, [event] note | ndjson: field event and event fields', PROGRESS, EVENTS],
    ['text is the default', CLI, MODES],
    ['ndjson: one JSON object per line on stdout', PROGRAM, 'flash --progress ndjson: nothing but JSON lines on stdout, the document last'],
    ['the start event carries total_bytes', PROGRESS, EVENTS],
    ['none: no lifecycle output', PROGRESS, 'none: nothing anywhere'],
    ['subprocess noise goes to stderr in every mode', FLOWS, 'speaks on standard error as it goes, and leaves nothing when we are killed'],
    ['the terminal UI uses FlashProgress for its dialog', PANES, 'cancelling asks first, and says what is on the disk then; a resize changes nothing'],
  ]),
]

// prettier-ignore
const ERRORS: readonly SpecificationRow[] = [
  ...rowsOf('Exit codes (all subcommands)', [
    ['0 success', FLASH, WRITTEN],
    ['1 validation rejected the plan', PROGRAM, REFUSED],
    ['1 a write subprocess failed', EXIT_RULES, '"Exit codes": every fault has one of the codes that the manual explains'],
    ['1 a provisioning step failed', BEFORE_ENDS, 'a workflow that fails leaves the disk without its ends'],
    ['2 argument error', 'flasher/cli.test.ts', 'misuse: 2, the reason and the usage on stderr, nothing on stdout'],
    ['2 missing required flag', CLI, MISUSE],
    ['2 missing input file', PROGRAM, ARGUMENTS],
    ['3 privilege required', FLASH, NO_ROOT],
    ['4 required external tool not installed', PROGRAM, NO_TOOL],
    ['5 target raced', FLASH, RACED],
    ['5 stopped being a suitable block device', FLASH_RULES, 'race: '],
  ]),
  ...rowsOf('flash-specific use', [
    ['0 validation passed with --dry-run', 'loop/flash-command.test.ts', 'a table for other sectors is found before anything is written'],
    ['0 write completed with --yes', FLASH, WRITTEN],
    ['1 validation failed', PROGRAM, REFUSED],
    ['1 a write or provisioning subprocess returned non-zero', BEFORE_ENDS, 'a workflow that fails leaves the disk without its ends'],
    ['2 argument error', CLI, MISUSE],
    ['2 missing image | 2 missing --user-data or --cijoe-workflow | 2 neither --dry-run nor --yes', PROGRAM, ARGUMENTS],
    ['3 --yes without root', FLASH, NO_ROOT],
    ['4 cijoe missing', PROGRAM, NO_TOOL],
    ['5 target raced', FLASH, RACED],
  ]),
  ...rowsOf('HTTP', [['GET /machines/{mac} unknown: 404 | DELETE /machines/{mac} unknown: 404; success 204', BOTH, CRUD]]),
]

// prettier-ignore
const LIMITS: readonly SpecificationRow[] = [
  ...rowsOf('Limits', [
    ['Session lifetime: sliding 7 days', FIELDS, 'the session: a flag in a signed cookie that slides for 7 days'],
    ['0.0.0.0, 8080 | Default image root', SETTINGS, DEFAULTS],
    ['Worker processes: exactly one', PROCESS, VARIABLES],
  ]),
  ...rowsOf('Versioning', [
    ['v<major>.<minor>.<patch>', 'build/release/parts.test.ts', 'the command line'],
    ['latest resolves to the newest', FETCH, 'a release is fetched with tag "'],
    ['GET /version', PROCESS, VARIABLES],
    ['flasher --version', PROGRAM, '--version prints the version of package.json'],
    ['schema_version is 1', CLI, ENVELOPE],
  ]),
  ...rowsOf('Configuration', [
    ['FLASHER_IMAGE_ROOT for the CLI', CLI, LISTED],
    ['FLASHER_IMAGE_ROOT for the server | FLASHER_STATE_DIR: state.db | FLASHER_BOOT_DIR | FLASHER_WEB_HOST | FLASHER_WEB_PORT', PROCESS, VARIABLES],
    ['FLASHER_BOOT_RELEASE_REPO', FETCH, 'a release is fetched with tag "'],
    ['the default of each variable', SETTINGS, DEFAULTS],
    ['${FLASHER_STATE_DIR}/boot', SETTINGS, 'the boot files go with the state folder'],
    ['--image-root overrides FLASHER_IMAGE_ROOT', CLI, LISTED],
    ['flasher.disks, flasher.images, flasher.formatting, flasher.flash: their names', PACKAGE, 'exports the names of the interface, and nothing else can be imported'],
    ['list_disks | list_images, detect_format, default_image_root, inspect_image', LIBRARY, 'lists disks and images, and tells what an image is'],
    ['print_table, print_inspect', 'library/formatting.test.ts', 'printTable and printInspect write to standard output'],
    ['execute_plan, FlashProgress, ProgressCallback', LIBRARY, 'plans, flashes with progress, and says done'],
  ]),
  ...decided('Configuration', [
    ['library entry points in Python', 'docs/decisions/0009-rows-that-we-leave.md'],
    ['FLASHER_BOOT_RELEASE_REPO: a project-specific repository', 'docs/decisions/0009-rows-that-we-leave.md'],
  ]),
]

// prettier-ignore
export const EARLIER_ROWS: readonly SpecificationRow[] = [
  SERVICE, RESOURCES, STATES, COMMANDS, ROUTES, ACCESS, ERRORS, LIMITS,
].flat()
