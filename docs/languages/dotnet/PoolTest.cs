// Each test takes a cluster of its own from the pool: fakekube run --clusters -- dotnet test
using System.Text;
using System.Text.Json;
using System.Text.Json.Nodes;
using Xunit;

/// <summary>A fork of the pool's own cluster, which ends when it is disposed.</summary>
public sealed class PoolCluster : IAsyncDisposable
{
    private static readonly HttpClient Http = new();
    private static readonly string Pool = Environment.GetEnvironmentVariable("FAKEKUBE_POOL") + "/fakekube/v1/clusters";
    private readonly JsonNode made;

    private PoolCluster(JsonNode made) => this.made = made;

    public static async Task<PoolCluster> Create()
    {
        var (status, made) = await Send("POST", Pool, new { from = "fork" });
        Assert.Equal(201, status);
        return new PoolCluster(made!);
    }

    public Task<(int Status, JsonNode? Body)> Api(string method, string path, object? body = null) => Send(method, made["url"] + path, body);

    public Task<(int Status, JsonNode? Body)> Control(string method, string path, object? body = null) =>
        Send(method, made["control"] + "/" + path, body);

    public async ValueTask DisposeAsync() => await Send("DELETE", Pool + "/" + made["name"], null);

    private static async Task<(int, JsonNode?)> Send(string method, string url, object? body)
    {
        using var request = new HttpRequestMessage(new HttpMethod(method), url);
        if (body is not null)
        {
            request.Content = new StringContent(JsonSerializer.Serialize(body), Encoding.UTF8, "application/json");
        }
        using var response = await Http.SendAsync(request);
        var text = await response.Content.ReadAsStringAsync();
        return ((int)response.StatusCode, text.Length == 0 ? null : JsonNode.Parse(text));
    }
}

public class PoolTest
{
    [Fact]
    public async Task AFaultIsRepeated()
    {
        await using var cluster = await PoolCluster.Create();
        var on = new { verbs = "create", resource = "configmaps" };
        await cluster.Control("POST", "faults", new { on, @do = new { status = new { code = 503 } }, times = 1 });
        Assert.Equal(201, await Repeat(cluster, "/api/v1/namespaces/default/configmaps", new { metadata = new { name = "a" } }));
        var (_, seen) = await cluster.Control("GET", "requests?verb=create&resource=configmaps");
        Assert.Equal(new[] { 503, 201 }, seen!["items"]!.AsArray().Select(one => (int)one!["status"]!));
    }

    [Fact]
    public async Task TheClockMoves()
    {
        await using var cluster = await PoolCluster.Create();
        var (_, before) = await cluster.Control("POST", "clock/hold");
        var (_, after) = await cluster.Control("POST", "clock/advance", new { seconds = 3600 });
        Assert.Equal(TimeSpan.FromHours(1), DateTime.Parse((string)after!["now"]!) - DateTime.Parse((string)before!["now"]!));
    }

    /// <summary>The client under test: it repeats what is refused with 503.</summary>
    private static async Task<int> Repeat(PoolCluster cluster, string path, object body)
    {
        for (var attempt = 0; attempt < 3; attempt++)
        {
            var (status, _) = await cluster.Api("POST", path, body);
            if (status != 503)
            {
                return status;
            }
        }
        return 503;
    }
}
