/** First-boot templates: their list, the page of each, and the card on a machine's page. */
export const FIRST_BOOT = {
  title: 'First-boot templates',
  one: 'First-boot template {name}',
  list: 'Templates',
  template: 'Template',
  introduction:
    'A template sets up a machine at the first boot after a flash, through cloud-init or Ignition. It is written with the image, before the disk can boot. Placeholders stand for the values of each machine: {name}, {mac}, {serial}, {label} (12 for the label rack-12) and {secret}.',
  empty: {
    title: 'No templates',
    text: 'Create one here, then assign it on the page of a machine or to a selection of machines.',
  },
  machines: { one: '{count} machine', other: '{count} machines' },
  saved: 'saved {time}',
  isSaved: 'Saved. Machines get it with their next flash.',
  create: 'New template',
  createButton: 'Create template',
  saveButton: 'Save',
  asText: 'As text',
  asForm: 'As a form',
  tooLong: 'This template is too long for a form. Change it with PUT /first-boot/{name}.',
  kept: {
    title: 'Not shown here, and kept as it is: {parts}.',
    text: 'A form would change it, such as a command of several lines. Change it {link}.',
    link: 'as text',
  },
  isText:
    'This template is a text of its own (User data), which replaces users, packages, files and commands.',
  sections: {
    hostname: 'host name',
    users: 'users',
    packages: 'packages',
    files: 'files',
    network: 'network',
    commands: 'commands',
    user_data: 'user data',
    secrets: 'secrets',
  },
  form: {
    name: 'Name',
    nameHint: 'Letters, digits and . _ - of your choice.',
    hostname: 'Host name',
    hostnameHint: 'A MAC address is written with hyphens here.',
    user: {
      title: 'Users',
      one: 'User {number}',
      add: 'Add a user',
      name: 'User name',
      keys: 'SSH keys',
      keysHint: 'Public keys, one per line.',
      sudo: 'Administrator: sudo without a password',
      password: 'Password hash',
      passwordHint:
        'Optional; without one the password is locked. {command} makes a hash, which is kept as a secret.',
    },
    packages: 'Packages',
    packagesHint:
      'Separate with spaces. They need a network and a package source; Ignition cannot install any.',
    file: {
      title: 'Files',
      one: 'File {number}',
      add: 'Add a file',
      path: 'Path',
      mode: 'Mode',
      modeHint:
        'Readable by all unless it is {private}; {program} for programs. It belongs to root.',
      text: 'Text',
    },
    network: {
      title: 'Network',
      kind: 'Addresses',
      kinds: {
        image: 'As the image has it',
        dhcp: 'DHCP on all network cards',
        static: 'Static address',
        text: 'Network configuration as text',
      },
      address: 'Address',
      addressHint:
        'With its prefix length, for the network card that the machine boots from. A template for several machines needs a placeholder in it.',
      gateway: 'Gateway',
      nameservers: 'Name servers',
      nameserversHint: 'Separate with spaces.',
      text: 'Network configuration',
      textHint: 'Of cloud-init, version 1 or 2. Ignition does not take any.',
    },
    commands: 'Commands',
    commandsHint: 'One per line, run as root at the end of the first boot.',
    userDataOpen: 'A whole text instead of users, packages, files and commands',
    userData: 'User data',
    userDataHint:
      '#cloud-config, a script, or an Ignition configuration (JSON, version 3). Write {braces} for braces that are not a placeholder.',
    secrets: 'Secrets',
    secretsHint:
      'One per line: name=value. Use {placeholder} in the texts above. Values are shown as dots here and appear in no event, export or log. Machines get them only with {setting}.',
    document: 'Template',
    documentHint: 'JSON, as the API has it. Secrets that stay as dots keep their values.',
  },
  preview: {
    title: 'Preview',
    text: 'What a machine named example gets, with dots for secrets. The page of a machine has its own preview.',
    button: 'Preview',
    incomplete: 'There is no preview yet:',
    refused: 'There is no preview yet: {reason}.',
    noIgnition: 'Not for images that use Ignition: {reason}.',
  },
  errors: {
    name: 'Enter a name of letters, digits and . _ - that begins with a letter or a digit.',
    taken: 'There already is a template {name}.',
    refused: {
      one: 'Not saved. Correct the field that is marked.',
      other: 'Not saved. Correct the {count} fields that are marked.',
    },
    tooMany: 'Not saved: there are {count} templates already.',
    missing: 'no such first-boot template',
    json: 'This is no JSON.',
    user: 'Enter a user name such as ada: lower-case letters, digits, _ and -.',
    key: 'Key {number} is no public key. One looks like ssh-ed25519 AAAA… ada@example, on one line.',
    package: 'Package {number} is not the name of a package.',
    command: 'Command {number}: {reason}.',
    secret:
      'A secret is a line name=value, and its name has at most 64 letters, digits, _ and -: {reason}.',
    address: 'Enter an IP address with its prefix length, such as 192.0.2.10/24.',
    gateway: 'Enter the IP address of the gateway, of the same kind as the address.',
    nameservers: 'Enter IP addresses, separated with spaces.',
  },
  removal: {
    title: 'Delete template',
    inUse: {
      one: 'In use by {count} machine. Assign it another template first.',
      other: 'In use by {count} machines. Assign them another template first.',
    },
    button: 'Delete template',
    question: 'Delete the template {name}?',
    consequence: 'It is gone for good. Machines that were set up with it stay as they are.',
  },
  tokens: {
    title: 'Secrets and boot tokens',
    required: 'Machines must show a boot token, so templates with secrets can be used.',
    missing:
      'Templates with secrets are not given to machines: boot tokens are not required. Set [pxe] tokens to require on the Settings page.',
    limits:
      'A boot token proves that this server booted the machine, and is void when the machine gets something else to do. It does not stop anyone on the boot network from requesting the boot script in the name of a machine that is to be flashed, and then its template. It does not encrypt the transfer either, unless machines use the server by HTTPS. Put into templates what such a person may know for a short time: keys that register a machine once rather than passwords of people.',
  },
  card: {
    title: 'First boot',
    all: 'Templates',
    template: 'Template',
    none: 'None',
    hint: 'Written with each flash of this machine. Who flashes by hand in the wizard sees it on the last screen, and can leave it out.',
    assign: 'Assign',
    preview: 'Preview for this machine',
    removed:
      'The template {name} no longer exists. This machine is not flashed until another one or none is assigned.',
    refused:
      'The template {template} does not fit this machine: {reason}. It is not flashed until it does.',
    needsTokens:
      'The template has secrets, and this machine is not flashed without {setting}: nothing would show that it is the one to get them.',
    noCall: 'It cannot tell the server that the new system has booted. {reason}',
  },
} as const
