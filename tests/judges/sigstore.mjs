// sigstore.mjs REQUESTS.json: asks @sigstore/verify for each request, prints one line each:
// "accepted" or "refused <code>: <message>". Request: {bundle, keys: {hint: PEM}, log: {url, id, spki}}.
import { readFileSync } from 'node:fs';
import { createPublicKey } from 'node:crypto';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const require = createRequire(join(process.env.JUDGES, 'package.json'));
const { bundleFromJSON } = require('@sigstore/bundle');
const { TrustedRoot } = require('@sigstore/protobuf-specs');
const { Verifier, toSignedEntity, toTrustMaterial } = require('@sigstore/verify');

for (const request of JSON.parse(readFileSync(process.argv[2], 'utf8'))) {
  try {
    const root = TrustedRoot.fromJSON({
      mediaType: 'application/vnd.dev.sigstore.trustedroot+json;version=0.1',
      tlogs: [{
        baseUrl: request.log.url,
        hashAlgorithm: 'SHA2_256',
        publicKey: { rawBytes: request.log.spki, keyDetails: 'PKIX_ED25519' },
        logId: { keyId: request.log.id },
      }],
    });
    const keys = Object.fromEntries(Object.entries(request.keys).map(([hint, pem]) =>
      [hint, { rawBytes: createPublicKey(pem).export({ type: 'spki', format: 'der' }) }]));
    const verifier = new Verifier(toTrustMaterial(root, keys), { timestampThreshold: 0 });
    verifier.verify(toSignedEntity(bundleFromJSON(request.bundle)));
    console.log('accepted');
  } catch (error) {
    console.log(`refused ${error.code ?? error.name}: ${error.message.split('\n')[0]}`);
  }
}
