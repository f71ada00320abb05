"""Leaks as they are committed, one for each issuer and each way of writing a credential down.

The forms are the ones that the issuers document. The credentials are put together while the tests
run, from a seed, so that no scanner takes this file for a leak and none of them opens anything.
"""

from __future__ import annotations

import base64
import json
import random
import string
from dataclasses import dataclass

LOWER = string.ascii_lowercase + string.digits
WORD = string.ascii_letters + string.digits
URLSAFE = WORD + "_-"
BASE64 = WORD + "+/"
HEX = string.digits + "abcdef"
UPPER = string.ascii_uppercase + string.digits


def made(seed: str, length: int, alphabet: str = WORD) -> str:
    """A credential's body: the same for the same seed, with a letter and a digit where it has any."""
    source = random.Random(seed)
    first = [char for char in alphabet if char.isalpha()] or alphabet
    last = [char for char in alphabet if char.isdigit()] or alphabet
    body = [source.choice(alphabet) for _ in range(length - 2)]
    return "".join([source.choice(first), *body, source.choice(last)])


def jwt(seed: str) -> str:
    def part(document: dict[str, object]) -> str:
        return base64.urlsafe_b64encode(json.dumps(document).encode()).decode().rstrip("=")

    head = part({"alg": "RS256", "typ": "JWT", "kid": made(seed, 8)})
    return f"{head}.{part({'sub': made(seed, 10), 'iat': 1700000000})}.{made(seed, 43, URLSAFE)}"


def pem(kind: str = "", seed: str = "pem") -> str:
    """A private key, as OpenSSL writes it; its first bytes are those of a real one."""
    first = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIB" if not kind else ""
    body = first + made(seed, 64 * 6 - len(first), BASE64)
    lines = [body[start : start + 64] for start in range(0, len(body), 64)]
    name = f"{kind} PRIVATE KEY".strip()
    return "\n".join([f"-----BEGIN {name}-----", *lines, f"-----END {name}-----"])


@dataclass(frozen=True)
class Leak:
    """One leak.

    Attributes:
        name: Who issued it, or how it is written.
        path: The file in which it stands.
        text: The line (or lines) of that file.
        secret: The part that must not be shown.
        surely: Whether it is one beyond doubt, so that it blocks; else it is a note.
    """

    name: str
    path: str
    text: str
    secret: str
    surely: bool = True


def leak(name: str, path: str, pattern: str, secret: str, *, surely: bool = True) -> Leak:
    return Leak(name, path, pattern.replace("@@", secret), secret, surely)


_AWS_ID = "AKIA" + made("aws", 16, string.ascii_uppercase + "234567")
_AWS_KEY = made("aws-key", 40, BASE64)
_SLASH_KEY = "/" + made("aws-slash", 39, BASE64)
_AZURE = made("azure", 86, BASE64) + "=="
_STRONG = "Wq7-" + made("pw", 8) + "!"
_PHRASE = "Lantern-Orbit-" + "4471"
_MOUNT = base64.b64encode(f"svc:{_STRONG}".encode()).decode()

ISSUED = [
    leak("AWS access key id", "config.yaml", "  aws_access_key_id: @@", _AWS_ID),
    leak("AWS temporary id", "models/m.py", 'key = "@@"', "ASIA" + _AWS_ID[4:]),
    leak("AWS secret key, INI", ".aws/credentials", "aws_secret_access_key = @@", _AWS_KEY),
    leak("AWS secret key, YAML", "config.yaml", '  secret_access_key: "@@"', _AWS_KEY),
    leak("AWS secret key with a slash first", "config.yaml", "  aws_secret_access_key: @@", _SLASH_KEY),
    leak("AWS session token", "deploy.sh", "export AWS_SESSION_TOKEN=@@", "FwoGZXIvYXdzE" + made("st", 200, BASE64)),
    leak("Bedrock key", "run.py", 'client("@@")', "ABSK" + made("bedrock", 128, BASE64)),
    leak("Google API key", "models/m.py", 'requests.get(url, params={"k": "@@"})', "AIza" + made("google", 35, URLSAFE)),
    leak("Google client secret", "client.json", '"client_secret": "@@",', "GOCSPX-" + made("gocspx", 28, URLSAFE)),
    leak("Google access token", "notes.md", "curl -H 'X: @@'", "ya29." + made("ya29", 120, URLSAFE)),
    leak("Google service account", "keys/sa.json", '  "private_key": "@@\\n",', pem().replace("\n", "\\n")),
    leak("Azure storage key", "config.yaml", "conn: DefaultEndpointsProtocol=https;AccountName=lake;AccountKey=@@;EndpointSuffix=core.windows.net", _AZURE),
    leak("Azure storage key for Spark", "config.yaml", "    spark.hadoop.fs.azure.account.key.lake.dfs.core.windows.net: @@", _AZURE),
    leak("Azure SAS", "models/m.py", 'URL = "https://lake.blob.core.windows.net/c/f.csv?sv=2022-11-02&sr=c&sig=@@"', made("sas", 42, WORD) + "%3D"),
    leak("Azure AD client secret", "config.yaml", "  tenant_secret_value: @@", "aB3" + "8Q~" + made("ad", 34, WORD + "_~.-")),
    leak("Azure Service Bus", "config.yaml", "bus: Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey=@@", made("bus", 43, BASE64) + "="),
    leak("Databricks", ".databrickscfg", "token = @@", "dapi" + made("dbx", 32, HEX)),
    leak("Databricks, numbered", "config.yaml", "      access_token: @@", "dapi" + made("dbx2", 32, HEX) + "-2"),
    leak("Databricks OAuth", "config.yaml", "      oauth_client_secret: @@", "dose" + made("dose", 32, HEX)),
    leak("GitHub classic", "setup.sh", "git clone https://x:@@@github.com/a/b", "ghp_" + made("ghp", 36)),
    leak("GitHub app", "notes.md", "the token was @@.", "ghs_" + made("ghs", 36)),
    leak("GitHub OAuth", "a.py", "T = '@@'", "gho_" + made("gho", 36)),
    leak("GitHub fine-grained", "a.py", "T = '@@'", "github_pat_" + made("fg", 22) + "_" + made("fg2", 59)),
    leak("GitLab", "ci.yml", "  TOKEN: @@", "glpat-" + made("gl", 20, URLSAFE)),
    leak("GitLab, routable", "ci.yml", "  X: @@", "glpat-" + made("glr", 40, URLSAFE) + ".01." + made("x", 9, LOWER)),
    leak("GitLab runner", "runner.toml", 'x = "@@"', "glrt-" + made("glrt", 20, URLSAFE)),
    leak("GitLab deploy token", "a.md", "@@", "gldt-" + made("gldt", 20, URLSAFE)),
    leak("Slack bot", "config.yaml", "  token: @@", f"xoxb-{made('s', 12, string.digits)}-{made('t', 12, string.digits)}-{made('u', 24)}"),
    leak("Slack app", "config.yaml", "  x: @@", f"xapp-1-{made('sa', 11, UPPER)}-{made('sb', 13, string.digits)}-{made('sc', 64, HEX)}"),
    leak("Slack webhook", "config.yaml", "  url: https://hooks.slack.com/services/@@", f"T{made('w', 10, UPPER)}/B{made('v', 10, UPPER)}/{made('h', 24)}"),
    leak("Stripe", "m.py", "k = '@@'", "sk_live_" + made("stripe", 24)),
    leak("Stripe restricted", "m.py", "k = '@@'", "rk_live_" + made("stripe2", 24)),
    leak("Stripe webhook", "m.py", "k = '@@'", "whsec_" + made("whsec", 32)),
    leak("OpenAI project", "m.py", "k = '@@'", "sk-proj-" + made("oa", 74, URLSAFE) + "T3BlbkFJ" + made("oa2", 74, URLSAFE)),
    leak("OpenAI", ".env", "OPENAI_API_KEY=@@", "sk-" + made("oa3", 20) + "T3BlbkFJ" + made("oa4", 20)),
    leak("Anthropic", "m.py", "k = '@@'", "sk-ant-api03-" + made("an", 93, URLSAFE) + "AA"),
    leak("Hugging Face", "m.py", "k = '@@'", "hf_" + made("hf", 34, string.ascii_letters)),
    leak("PyPI", ".pypirc", "password = @@", "pypi-AgEIcHlwaS5vcmc" + made("pypi", 120, URLSAFE)),
    leak("npm", ".npmrc", "//registry.npmjs.org/:_authToken=@@", "npm_" + made("npm", 36)),
    leak("Docker Hub", "a.sh", "docker login -p @@", "dckr_pat_" + made("docker", 27, URLSAFE)),
    leak("SendGrid", "m.py", "k = '@@'", f"SG.{made('sg', 22, URLSAFE)}.{made('sg2', 43, URLSAFE)}"),
    leak("Vault", "a.sh", "vault login @@", "hvs." + made("hvs", 95, URLSAFE)),
    leak("DigitalOcean", "a.tf", 'x = "@@"', "dop_v1_" + made("do", 64, HEX)),
    leak("Grafana", "a.yml", "x: @@", f"glsa_{made('gr', 32)}_{made('gr2', 8, HEX)}"),
    leak("Neon password in a URL", "config.yaml", "  x: postgresql://o:@@@ep-a.neon.tech/db", "npg_" + made("neon", 12)),
    leak("dbt Cloud", "a.yml", "x: @@", "dbtc_" + made("dbt", 43, URLSAFE)),
    leak("Airtable", "m.py", "k = '@@'", f"pat{made('at', 14)}.{made('at2', 64, HEX)}"),
    leak("Aiven", "a.yml", "x: @@", "AVNS_" + made("avns", 18, URLSAFE)),
    leak("Discord webhook", "m.py", "u = 'https://discord.com/api/webhooks/1234567890123/@@'", made("disc", 68, URLSAFE)),
    leak("Telegram", "m.py", "k = '@@'", f"{made('tg', 9, string.digits)}:AA{made('tg2', 33, URLSAFE)}"),
    leak("Grafana Cloud", "a.yml", "x: @@", "glc_" + made("glc", 60, BASE64)),
    leak("PlanetScale", "a.yml", "x: @@", "pscale_pw_" + made("ps", 43, URLSAFE)),
    leak("Pulumi", "a.sh", "pulumi login @@", "pul-" + made("pul", 40, HEX)),
    leak("Supabase", "a.yml", "x: @@", "sbp_" + made("sb", 40, HEX)),
    leak("Doppler", "a.yml", "x: @@", "dp.pt." + made("dp", 43)),
    leak("Sentry", "a.yml", "x: @@", "sntrys_" + made("sentry", 120, BASE64)),
    leak("Terraform Cloud", "a.sh", "login @@", f"{made('tf', 14)}.atlasv1.{made('tf2', 67, URLSAFE)}"),
    leak("Postman", "a.sh", "run @@", f"PMAK-{made('pm', 24, HEX)}-{made('pm2', 34, HEX)}"),
    leak("New Relic", "a.yml", "x: @@", "NRAK-" + made("nr", 27, UPPER)),
    leak("age", "key.txt", "@@", "AGE-SECRET-KEY-1" + made("age", 58, "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L")),
    leak("JWT (MotherDuck)", "config.yaml", "  token: @@", jwt("md")),
    leak("JWT in an address", "m.py", "u = 'https://x/y?t=@@'", jwt("url")),
    leak("RSA key", "keys/id_rsa", "@@", pem("RSA")),
    leak("EC key", "keys/ec.pem", "@@", pem("EC")),
    leak("OpenSSH key", "keys/id_ed25519", "@@", pem("OPENSSH")),
    leak("encrypted key", "keys/snow.p8", "@@", pem("ENCRYPTED")),
    leak("Snowflake key in one line", "config.yaml", "      private_key: @@", pem().split("\n", 1)[1].rsplit("\n", 1)[0].replace("\n", "")),
]  # fmt: skip

WRITTEN = [
    leak("state connection", "config.yaml", "      password: @@", _STRONG),
    leak("password with words and digits", "config.yaml", "      password: @@", _PHRASE),
    leak("metastore", "config.yaml", '            spark.hadoop.javax.jdo.option.ConnectionPassword: "@@"', "Tr4vel-Kettle-" + "88"),
    leak("digits before letters", "config.yaml", "      password: @@", "8675309" + "jny"),
    leak("word behind a number", "config.yaml", "      password: @@", "3.14-" + "Sup3rS3cret"),
    leak("word behind a date", "config.yaml", "      password: @@", "2024-01-01" + "TopSecret9"),
    leak("short with a digit", "config.yaml", "      password: @@", "hunter" + "22"),
    leak("S3 secret key for Spark", "config.yaml", "          spark.hadoop.fs.s3a.secret.key: @@", _AWS_KEY),
    leak("spark-defaults", "conf/spark-defaults.conf", "spark.hadoop.fs.s3a.secret.key    @@", _AWS_KEY),
    leak("Spark session in Python", "models/m.py", '.config("spark.hadoop.fs.s3a.secret.key", "@@")', _AWS_KEY),
    leak("Spark setting in SQL", "models/m.sql", "SET spark.hadoop.fs.s3a.secret.key = @@;", _AWS_KEY),
    leak("Spark's JDBC table", "models/m.sql", "OPTIONS (url 'jdbc:postgresql://h/d', user 'u', password '@@')", _STRONG),
    leak("Snowflake COPY", "models/m.sql", "CREDENTIALS = (AWS_KEY_ID = 'x' AWS_SECRET_KEY = '@@')", _AWS_KEY),
    leak("DuckDB secret", "models/m.sql", "CREATE SECRET s (TYPE s3, KEY_ID 'k', SECRET '@@');", _AWS_KEY),
    leak("Spark's table properties", "models/m.sql", "TBLPROPERTIES ('password' = '@@')", _STRONG),
    leak("a new user", "models/m.sql", "CREATE USER bot WITH PASSWORD '@@';", _STRONG),
    leak("MySQL user", "models/m.sql", "CREATE USER bot IDENTIFIED BY '@@';", _STRONG),
    leak("hive-site", "conf/hive-site.xml", "<name>javax.jdo.option.ConnectionPassword</name>\n    <value>@@</value>", _STRONG),
    leak("config.py keyword", "config.py", 'PostgresConnectionConfig(host="h", password="@@")', _STRONG),
    leak("config.py dict", "config.py", "\"state\": {'user': 'u', 'password': '@@'},", _STRONG),
    leak("default of an env var, Python", "config.py", 'os.environ.get("DB_PASSWORD", "@@")', _STRONG),
    leak("default of an env var, Jinja", "config.yaml", "password: \"{{ env_var('DB_PASSWORD', '@@') }}\"", _STRONG),
    leak("default in shell", "run.sh", "export PGPASSWORD=${PGPASSWORD:-@@}", _STRONG),
    leak("SQLAlchemy", "config.py", 'create_engine("postgresql+psycopg2://bot:@@@db.internal:5432/state")', _STRONG),
    leak("SQLAlchemy, base64", "models/m.sql", "-- postgresql+psycopg2://etl:@@@db.internal/state", "K7f/9sQx2+" + "Lm"),
    leak("SQLAlchemy, a slash first", "config.yaml", "url: postgresql://etl:@@@db:5432/state", "/9sQx2+Lm" + "K7f"),
    leak("SQLAlchemy, words around a slash", "config.yaml", "url: mysql://etl:@@@db/state", "Summer/" + "2024"),
    leak("SQLAlchemy, a port's digits without a port", "config.yaml", "url: mysql://etl:@@@db/state", "48213x/" + "Qr7!"),
    leak("SQLAlchemy, slash and query", "a.py", "e = create_engine('postgresql://etl:@@@[fd00::1]/d')", "a/b?c=" + "Xq7"),
    leak("SQLAlchemy, the other quote", "a.py", 'e = create_engine("postgresql://etl:@@@db/d")', "K7f'9sQ<x2" + "Lm"),
    leak("SQLAlchemy, the other quote too", "a.py", "e = create_engine('postgresql://etl:@@@db/d')", 'K7f"9sQ>x2' + "Lm"),
    leak("MySQL URL", "config.yaml", "url: mysql+pymysql://bot:@@@db/state", _STRONG),
    leak("Redis", "config.yaml", "url: redis://:@@@cache:6379/0", _STRONG),
    leak("MongoDB", "config.yaml", "url: mongodb+srv://bot:@@@c0.mongodb.net", _STRONG),
    leak("Snowflake URL", "m.py", 'u = "snowflake://bot:@@@acme-eu/db/s?warehouse=w"', _STRONG),
    leak("Airflow connection", "compose.yaml", "  AIRFLOW_CONN_X: postgres://bot:@@@db/state", _STRONG),
    leak("package index", "pip.conf", "index-url = https://bot:@@@pypi.internal/simple", _STRONG),
    leak("JDBC PostgreSQL", "m.py", 'u = "jdbc:postgresql://h/d?user=bot&password=@@&ssl=true"', _STRONG),
    leak("JDBC SQL Server", "m.py", 'u = "jdbc:sqlserver://h:1433;databaseName=d;user=bot;password=@@;encrypt=true"', _STRONG),
    leak("JDBC Oracle", "m.py", 'u = "jdbc:oracle:thin:scott/@@@//h:1521/s"', "t1ger-" + made("ora", 5)),
    leak("ODBC", "m.py", 'c = "Driver={ODBC Driver 18};Server=h;Uid=bot;Pwd=@@;"', _STRONG),
    leak("libpq", "m.py", 'psycopg2.connect("host=h dbname=d user=bot password=@@")', _STRONG),
    leak("basic authentication", "m.py", 'headers = {"Authorization": "Basic @@"}', _MOUNT),
    leak("bearer", "m.py", 'headers = {"Authorization": "Bearer @@"}', made("bearer", 24)),
    leak("curl", "run.sh", "curl -u bot:@@ https://x/y", _STRONG),
    leak("command line", "run.sh", "tool --user bot --password @@ load", _STRONG),
    leak("mysql's -p", "run.sh", "mysql -h db -u etl -p@@ shop < load.sql", "hunter2" + "secret"),
    leak("mysqldump's -p in quotes", "run.sh", "/usr/bin/mysqldump --user=etl -p'@@' shop | gzip", _STRONG),
    leak("mariadb-admin as a list", "docker-compose.yml", '      test: ["CMD", "mariadb-admin", "ping", "-u", "root", "-p@@"]', "Lantern" + "4471"),
    leak("mysqlsh's -p", "run.sh", "docker exec db mysqlsh --sql -uroot -p@@", _PHRASE),
    leak("sshpass", "run.sh", "sshpass -p '@@' ssh etl@host", _STRONG),
    leak("sshpass in one word", "run.sh", "sshpass -p@@ scp a etl@host:", _PHRASE),
    leak("an object around a secret", "settings.json", '  "secret": {"value": "@@"},', made("object", 24)),
    leak("an object around a password, YAML", "config.yaml", "  password: {value: @@}", _STRONG),
    leak("an object in an object", "settings.json", '{"client_secret": {"plain": "@@"}}', made("object2", 24)),
    leak("German", "config.yaml", "  Passwort: @@", _STRONG),
    leak("German, in code", "config.py", 'db_kennwort = "@@"', _STRONG),
    leak("Dutch", "config.yaml", "  wachtwoord: @@", _PHRASE),
    leak("Spanish", "app.properties", "contrasena=@@", _STRONG),
    leak("French", "config.yaml", "  mot_de_passe: @@", _STRONG),
    leak(".netrc's entry over lines in a script", "setup.sh", "machine api.x.io\n  login bot\n  password @@", _STRONG),
    leak(".netrc's entry without a machine", "setup.sh", "default\n\tpassword @@\n\tlogin bot", _PHRASE),
    leak(".netrc's password alone on its line", "notes.txt", "    password @@", "hunter2" + "xyz9"),
    leak(".netrc", ".netrc", "machine api.x.io login bot password @@", _STRONG),
    leak(".netrc over lines", ".netrc", "  password @@", _STRONG),
    leak(".pgpass", ".pgpass", "db.internal:5432:state:bot:@@", _STRONG),
    leak(".npmrc of a registry of one's own", ".npmrc", "//npm.internal/:_authToken=@@", "26dfe8d8-889b-4380-" + "92ff-9c3c6ea5d930"),
    leak("Docker's login", ".docker/config.json", '"auth": "@@"', base64.b64encode(b"_token:" + made("docker", 60).encode()).decode()),
    leak("a file without suffix", "hub", '  oauth_token: "@@"', made("hub", 40, HEX)),
    leak("a shell's own settings", ".bash_profile", "export AWS_SECRET_ACCESS_KEY=@@", made("bash", 38)),
    leak("Django", "web/settings.py", "SECRET_KEY = '@@'", "zh!=!gq(w^_t[sBR29954x)HI+$ehwss*xYNQeu([xcW"),
    leak("Rails", "web/secrets.yml", "  secret_key_base: @@", made("rails", 128, HEX)),
    leak("dbt profile", "profiles.yml", "      pass: @@", _STRONG),
    leak("compose", "docker-compose.yml", "      POSTGRES_PASSWORD: locadora_secret_2024", "locadora_secret_2024"),
    leak("compose, as a list", "docker-compose.yml", "      - POSTGRES_PASSWORD=@@", _STRONG),
    leak("dotenv", ".env.ci", "API_TOKEN=@@", made("env", 13, LOWER)),
    leak("shell", "run.sh", 'export DB_PASS="@@"', _STRONG),
    leak("Terraform", "main.tf", '  password = "@@"', _STRONG),
    leak("TOML", "secrets.toml", 'api_key = "@@"', made("toml", 32, HEX)),
    leak("JSON", "settings.json", '  "clientSecret": "@@",', made("json", 30)),
    leak("properties", "app.properties", "db.password=@@", _STRONG),
    leak("client secret", "config.yaml", "client_secret: 9sdf8-sdf7-sdf6", "9sdf8-sdf7-sdf6"),
    leak("digits only", "config.yaml", "      password: '@@'", "48" + "21975530"),
    leak("a word as password", "config.py", 'password = "@@"', "super_secret_" + "password", surely=False),
    leak("a default password", "docker-compose.yml", "      POSTGRES_PASSWORD: @@", "post" + "gres", surely=False),
]  # fmt: skip

LEAKS = ISSUED + WRITTEN
